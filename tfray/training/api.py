"""The names of ``tf.train``."""

from tfray.actors.clusters.server import Server
from tfray.formats.checkpoint_state import CheckpointState, SaverDef
from tfray.formats.cluster_spec import ClusterDef, ClusterSpec, JobDef, ServerDef
from tfray.formats.events import summary_iterator
from tfray.formats.example import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from tfray.formats.safetensors import load_safetensors, save_safetensors
from tfray.library.input.filenames import match_filenames_once
from tfray.library.inspect.event_writer import FileWriter as SummaryWriter
from tfray.library.platform.graph_files import write_graph
from tfray.library.variables.dynamic_embedding import DynamicEmbedding
from tfray.library.variables.saveable_resource import SaveableResource
from tfray.training import experimental
from tfray.training.checkpoints.checkpoint_management import (
    checkpoint_exists,
    checkpoints_iterator,
    generate_checkpoint_state_proto,
    get_checkpoint_mtimes,
    get_checkpoint_state,
    latest_checkpoint,
    remove_checkpoint,
    update_checkpoint_state,
)
from tfray.training.checkpoints.checkpoint_manager import CheckpointManager
from tfray.training.checkpoints.checkpoint_utils import (
    CheckpointReader,
    NewCheckpointReader,
    init_from_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from tfray.training.checkpoints.import_meta_graph import import_meta_graph
from tfray.training.checkpoints.meta_graph import export_meta_graph
from tfray.training.checkpoints.object_checkpoint import Checkpoint
from tfray.training.checkpoints.saveables import random_state_saveables
from tfray.training.checkpoints.saver import Saver
from tfray.training.checkpoints.warm_start import VocabInfo, warm_start
from tfray.training.input.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from tfray.training.input.dataset_shard import DatasetShard
from tfray.training.input.input_producers import (
    input_producer,
    limit_epochs,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from tfray.training.input.inputs import InputContext, array_input, dataset_input, ray_input
from tfray.training.optimizers.adadelta import AdadeltaOptimizer
from tfray.training.optimizers.adagrad import AdagradOptimizer
from tfray.training.optimizers.adagrad_da import AdagradDAOptimizer
from tfray.training.optimizers.adam import AdamOptimizer
from tfray.training.optimizers.ftrl import FtrlOptimizer
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer
from tfray.training.optimizers.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from tfray.training.optimizers.momentum import MomentumOptimizer
from tfray.training.optimizers.moving_averages import ExponentialMovingAverage
from tfray.training.optimizers.optimizer import Optimizer
from tfray.training.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from tfray.training.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from tfray.training.optimizers.rms_prop import RMSPropOptimizer
from tfray.training.sessions.hooks import (
    FeedFnHook,
    FinalOpsHook,
    GlobalStepWaiterHook,
    LoggingTensorHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    NeverTriggerTimer,
    SecondOrStepTimer,
    StepCounterHook,
    StopAtStepHook,
)
from tfray.training.sessions.hooks_saving import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    ProfilerHook,
    SummarySaverHook,
)
from tfray.training.sessions.monitored_session import (
    ChiefSessionCreator,
    MonitoredSession,
    MonitoredTrainingSession,
    SessionCreator,
    SingularMonitoredSession,
    WorkerSessionCreator,
)
from tfray.training.sessions.scaffold import Scaffold
from tfray.training.sessions.session_manager import SessionManager
from tfray.training.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from tfray.training.sessions.supervisor import Supervisor
from tfray.training.sessions.sync_replicas import SyncReplicasOptimizer
from tfray.training.sessions.train_loop import basic_train_loop
from tfray.training.threads import queue_runner
from tfray.training.threads.coordinator import Coordinator, LooperThread
from tfray.training.threads.device_setter import GreedyLoadBalancingStrategy, byte_size_load_fn, replica_device_setter
from tfray.training.threads.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from tfray.training.threads.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from tfray.training.trainer.batch_scale import batch_scale
from tfray.training.trainer.callback import Callback, RunStart
from tfray.training.trainer.model import ModeKeys, ModelSpec
from tfray.training.trainer.run_config import RunConfig, ScalingConfig
from tfray.training.trainer.run_events import RunEvent
from tfray.training.trainer.run_result import Result, SavedCheckpoint
from tfray.training.trainer.step_history import StepHistory, StepRecord
from tfray.training.trainer.trainer import Trainer

# fmt: off
__all__ = [
    "AdadeltaOptimizer", "AdagradDAOptimizer", "AdagradOptimizer", "AdamOptimizer", "BytesList", "Callback",
    "Checkpoint", "CheckpointManager", "CheckpointReader", "CheckpointSaverHook", "CheckpointSaverListener",
    "CheckpointState", "ChiefSessionCreator", "ClusterDef", "ClusterSpec", "Coordinator", "DatasetShard",
    "DynamicEmbedding", "Example",
    "ExponentialMovingAverage", "Feature", "FeatureList", "FeatureLists", "Features", "FeedFnHook", "FinalOpsHook",
    "FloatList", "FtrlOptimizer", "GlobalStepWaiterHook", "GradientDescentOptimizer", "GreedyLoadBalancingStrategy",
    "InputContext", "Int64List", "JobDef", "LoggingTensorHook", "LooperThread", "ModeKeys", "ModelSpec",
    "MomentumOptimizer", "MonitoredSession", "MonitoredTrainingSession", "NanLossDuringTrainingError", "NanTensorHook",
    "NeverTriggerTimer", "NewCheckpointReader", "Optimizer", "ProfilerHook", "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer", "QueueRunner", "RMSPropOptimizer", "Result", "RunConfig", "RunEvent",
    "RunStart", "SaveableResource", "SavedCheckpoint", "Saver", "SaverDef", "Scaffold", "ScalingConfig",
    "SecondOrStepTimer", "SequenceExample", "Server", "ServerDef", "SessionCreator", "SessionManager", "SessionRunArgs",
    "SessionRunContext", "SessionRunHook", "SessionRunValues", "SingularMonitoredSession", "StepCounterHook",
    "StepHistory", "StepRecord", "StopAtStepHook", "SummarySaverHook", "SummaryWriter", "Supervisor",
    "SyncReplicasOptimizer", "Trainer", "VocabInfo", "WorkerSessionCreator", "add_queue_runner", "array_input",
    "assert_global_step", "basic_train_loop", "batch", "batch_join", "batch_scale", "byte_size_load_fn",
    "checkpoint_exists", "checkpoints_iterator", "cosine_decay", "cosine_decay_restarts", "create_global_step",
    "dataset_input", "experimental", "exponential_decay", "export_meta_graph", "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes", "get_checkpoint_state", "get_global_step", "get_or_create_global_step", "global_step",
    "import_meta_graph", "init_from_checkpoint", "input_producer", "inverse_time_decay", "latest_checkpoint",
    "limit_epochs", "linear_cosine_decay", "list_variables", "load_checkpoint", "load_safetensors", "load_variable",
    "match_filenames_once", "maybe_batch", "maybe_batch_join", "maybe_shuffle_batch", "maybe_shuffle_batch_join",
    "natural_exp_decay", "noisy_linear_cosine_decay", "piecewise_constant", "piecewise_constant_decay",
    "polynomial_decay", "queue_runner", "random_state_saveables", "range_input_producer", "ray_input",
    "remove_checkpoint", "replica_device_setter", "save_safetensors", "shuffle_batch", "shuffle_batch_join",
    "slice_input_producer", "start_queue_runners", "string_input_producer", "summary_iterator",
    "update_checkpoint_state", "warm_start", "write_graph",
]
# fmt: on
