"""The names of ``tf.train``."""

# isort: skip_file
from tfray.formats.example import (
    BytesList as BytesList,
    Example as Example,
    Feature as Feature,
    FeatureList as FeatureList,
    FeatureLists as FeatureLists,
    Features as Features,
    FloatList as FloatList,
    Int64List as Int64List,
    SequenceExample as SequenceExample,
)
from tfray.formats.events import summary_iterator as summary_iterator
from tfray.library.variables.dynamic_embedding import DynamicEmbedding as DynamicEmbedding
from tfray.library.inspect.event_writer import FileWriter as SummaryWriter
from tfray.actors.clusters.server import Server as Server
from tfray.formats.cluster_spec import (
    ClusterDef as ClusterDef,
    ClusterSpec as ClusterSpec,
    JobDef as JobDef,
    ServerDef as ServerDef,
)
from tfray.formats.checkpoint_state import CheckpointState as CheckpointState, SaverDef as SaverDef
from tfray.formats.safetensors import load_safetensors as load_safetensors, save_safetensors as save_safetensors
from tfray.training.optimizers.adadelta import AdadeltaOptimizer as AdadeltaOptimizer
from tfray.training.optimizers.adagrad import AdagradOptimizer as AdagradOptimizer
from tfray.training.optimizers.adagrad_da import AdagradDAOptimizer as AdagradDAOptimizer
from tfray.training.optimizers.adam import AdamOptimizer as AdamOptimizer
from tfray.training.trainer.batch_scale import batch_scale as batch_scale
from tfray.training.input.batching import (
    batch as batch,
    batch_join as batch_join,
    maybe_batch as maybe_batch,
    maybe_batch_join as maybe_batch_join,
    maybe_shuffle_batch as maybe_shuffle_batch,
    maybe_shuffle_batch_join as maybe_shuffle_batch_join,
    shuffle_batch as shuffle_batch,
    shuffle_batch_join as shuffle_batch_join,
)
from tfray.training.checkpoints.checkpoint_management import (
    checkpoint_exists as checkpoint_exists,
    checkpoints_iterator as checkpoints_iterator,
    generate_checkpoint_state_proto as generate_checkpoint_state_proto,
    get_checkpoint_mtimes as get_checkpoint_mtimes,
    get_checkpoint_state as get_checkpoint_state,
    latest_checkpoint as latest_checkpoint,
    remove_checkpoint as remove_checkpoint,
    update_checkpoint_state as update_checkpoint_state,
)
from tfray.training.checkpoints.checkpoint_utils import (
    CheckpointReader as CheckpointReader,
    NewCheckpointReader as NewCheckpointReader,
    init_from_checkpoint as init_from_checkpoint,
    list_variables as list_variables,
    load_checkpoint as load_checkpoint,
    load_variable as load_variable,
)
from tfray.training.threads.coordinator import Coordinator as Coordinator, LooperThread as LooperThread
from tfray.training.threads.device_setter import (
    GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy,
    byte_size_load_fn as byte_size_load_fn,
    replica_device_setter as replica_device_setter,
)
from tfray.training.optimizers.ftrl import FtrlOptimizer as FtrlOptimizer
from tfray.library.input.filenames import match_filenames_once as match_filenames_once
from tfray.training.threads.global_step import (
    create_global_step as create_global_step,
    get_global_step as get_global_step,
    get_or_create_global_step as get_or_create_global_step,
    global_step as global_step,
)
from tfray.training.optimizers.gradient_descent import GradientDescentOptimizer as GradientDescentOptimizer
from tfray.training.checkpoints.import_meta_graph import import_meta_graph as import_meta_graph
from tfray.training.checkpoints.graph_files import write_graph as write_graph
from tfray.training.sessions.hooks import (
    FeedFnHook as FeedFnHook,
    FinalOpsHook as FinalOpsHook,
    GlobalStepWaiterHook as GlobalStepWaiterHook,
    LoggingTensorHook as LoggingTensorHook,
    NanLossDuringTrainingError as NanLossDuringTrainingError,
    NanTensorHook as NanTensorHook,
    NeverTriggerTimer as NeverTriggerTimer,
    SecondOrStepTimer as SecondOrStepTimer,
    StepCounterHook as StepCounterHook,
    StopAtStepHook as StopAtStepHook,
)
from tfray.training.sessions.hooks_saving import (
    CheckpointSaverHook as CheckpointSaverHook,
    CheckpointSaverListener as CheckpointSaverListener,
    ProfilerHook as ProfilerHook,
    SummarySaverHook as SummarySaverHook,
)
from tfray.training.input.input_producers import (
    input_producer as input_producer,
    limit_epochs as limit_epochs,
    range_input_producer as range_input_producer,
    slice_input_producer as slice_input_producer,
    string_input_producer as string_input_producer,
)
from tfray.training.input.inputs import (
    InputContext as InputContext,
    array_input as array_input,
    dataset_input as dataset_input,
)
from tfray.training.optimizers.learning_rate_decay import (
    cosine_decay as cosine_decay,
    cosine_decay_restarts as cosine_decay_restarts,
    exponential_decay as exponential_decay,
    inverse_time_decay as inverse_time_decay,
    linear_cosine_decay as linear_cosine_decay,
    natural_exp_decay as natural_exp_decay,
    noisy_linear_cosine_decay as noisy_linear_cosine_decay,
    piecewise_constant as piecewise_constant,
    piecewise_constant_decay as piecewise_constant_decay,
    polynomial_decay as polynomial_decay,
)
from tfray.training.checkpoints.meta_graph import export_meta_graph as export_meta_graph
from tfray.training.trainer.model import ModeKeys as ModeKeys, ModelSpec as ModelSpec
from tfray.training.optimizers.momentum import MomentumOptimizer as MomentumOptimizer
from tfray.training.sessions.monitored_session import (
    ChiefSessionCreator as ChiefSessionCreator,
    MonitoredSession as MonitoredSession,
    MonitoredTrainingSession as MonitoredTrainingSession,
    SessionCreator as SessionCreator,
    SingularMonitoredSession as SingularMonitoredSession,
    WorkerSessionCreator as WorkerSessionCreator,
)
from tfray.training.optimizers.moving_averages import ExponentialMovingAverage as ExponentialMovingAverage
from tfray.training.optimizers.optimizer import Optimizer as Optimizer
from tfray.training.optimizers.proximal_adagrad import ProximalAdagradOptimizer as ProximalAdagradOptimizer
from tfray.training.optimizers.proximal_gradient_descent import (
    ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
)
from tfray.training.threads import queue_runner as queue_runner
from tfray.training.threads.queue_runner import (
    QueueRunner as QueueRunner,
    add_queue_runner as add_queue_runner,
    start_queue_runners as start_queue_runners,
)
from tfray.training.optimizers.rms_prop import RMSPropOptimizer as RMSPropOptimizer
from tfray.library.variables.saveable_resource import SaveableResource as SaveableResource
from tfray.training.checkpoints.saveables import random_state_saveables as random_state_saveables
from tfray.training.trainer.run_config import (
    Result as Result,
    RunConfig as RunConfig,
    ScalingConfig as ScalingConfig,
)
from tfray.training.trainer.run_events import RunEvent as RunEvent
from tfray.training.checkpoints.saver import Saver as Saver
from tfray.training.sessions.scaffold import Scaffold as Scaffold
from tfray.training.sessions.session_manager import SessionManager as SessionManager
from tfray.training.sessions.session_run_hook import (
    SessionRunArgs as SessionRunArgs,
    SessionRunContext as SessionRunContext,
    SessionRunHook as SessionRunHook,
    SessionRunValues as SessionRunValues,
)
from tfray.training.trainer.step_history import StepHistory as StepHistory, StepRecord as StepRecord
from tfray.training.sessions.supervisor import Supervisor as Supervisor
from tfray.training.sessions.sync_replicas import SyncReplicasOptimizer as SyncReplicasOptimizer
from tfray.training.sessions.train_loop import basic_train_loop as basic_train_loop
from tfray.training.trainer.trainer import Trainer as Trainer
