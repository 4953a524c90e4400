"""TensorFlow's meta graphs and saved models as protocol buffers: a graph with its collections, saver and signatures."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Final

from tfray.formats.checkpoint_state import SaverDef
from tfray.formats.graph_proto import GraphDef, OpList, VersionDef
from tfray.formats.message import Enumeration, Field, Message
from tfray.formats.tensor_proto import DATA_TYPE, TensorProto, TensorShapeProto


class PackedMessage(Message):
    """A message of any kind: the name of the kind in ``type_url``, the message in ``value``."""

    FIELDS = (Field(1, "type_url", "string"), Field(2, "value", "bytes"))

    def Pack(self, msg: Message) -> None:
        """Hold a message, under TensorFlow's name of its kind."""
        package = getattr(sys.modules[type(msg).__module__], "PACKAGE", "tensorflow")
        self.type_url = f"type.googleapis.com/{package}.{type(msg).__name__}"
        self.value = msg.SerializeToString()

    def Is(self, descriptor: Any) -> bool:
        """Whether it holds a message of the kind that a ``DESCRIPTOR`` describes."""
        return bool(self.type_url.rpartition(".")[2] == descriptor.name)

    def Unpack(self, msg: Message) -> bool:
        """Set `msg` to the message that it holds, and return True; return False if that is of another kind."""
        held = self.Is(msg.DESCRIPTOR)
        if held:
            msg.ParseFromString(self.value)
        return held


# -- collections ---------------------------------------------------------------------------------------


class CollectionNodes(Message):
    """Names of operations and tensors."""

    FIELDS = (Field(1, "value", "string", repeated=True),)


class CollectionBytes(Message):
    """Messages, or text."""

    FIELDS = (Field(1, "value", "bytes", repeated=True),)


class CollectionInts(Message):
    """Whole numbers."""

    FIELDS = (Field(1, "value", "int64", repeated=True),)


class CollectionFloats(Message):
    """Numbers."""

    FIELDS = (Field(1, "value", "float", repeated=True),)


class CollectionMessages(Message):
    """Messages with the names of their kinds."""

    FIELDS = (Field(1, "value", PackedMessage, repeated=True),)


class CollectionDef(Message):
    """The entries of a collection, in the list for their kind."""

    FIELDS = (
        Field(1, "node_list", CollectionNodes, oneof="kind"),
        Field(2, "bytes_list", CollectionBytes, oneof="kind"),
        Field(3, "int64_list", CollectionInts, oneof="kind"),
        Field(4, "float_list", CollectionFloats, oneof="kind"),
        Field(5, "any_list", CollectionMessages, oneof="kind"),
    )

    NodeList = CollectionNodes
    BytesList = CollectionBytes
    Int64List = CollectionInts
    FloatList = CollectionFloats
    AnyList = CollectionMessages


class SaveSliceInfoDef(Message):
    """Which part of a partitioned variable a variable is."""

    FIELDS = (
        Field(1, "full_name", "string"),
        Field(2, "full_shape", "int64", repeated=True),
        Field(3, "var_offset", "int64", repeated=True),
        Field(4, "var_shape", "int64", repeated=True),
    )


_SYNCHRONIZATIONS: Final = Enumeration(
    __name__,
    "VariableSynchronization",
    {f"VARIABLE_SYNCHRONIZATION_{name}": i for i, name in enumerate(("AUTO", "NONE", "ON_WRITE", "ON_READ"))},
)
_AGGREGATIONS: Final = Enumeration(
    __name__,
    "VariableAggregation",
    {f"VARIABLE_AGGREGATION_{name}": i for i, name in enumerate(("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"))},
)


class VariableDef(Message):
    """A variable: the names of its operations and tensors."""

    FIELDS = (
        Field(1, "variable_name", "string"),
        Field(2, "initializer_name", "string"),
        Field(3, "snapshot_name", "string"),
        Field(4, "save_slice_info_def", SaveSliceInfoDef),
        Field(5, "is_resource", "bool"),
        Field(6, "initial_value_name", "string"),
        Field(7, "trainable", "bool"),
        Field(8, "synchronization", _SYNCHRONIZATIONS),
        Field(9, "aggregation", _AGGREGATIONS),
    )


_CODE_NAMES: Final = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
)
_ERROR_CODES: Final = Enumeration(__name__, "Code", {name: i for i, name in enumerate(_CODE_NAMES.split())})


class QueueRunnerDef(Message):
    """A queue runner: the names of its queue and operations."""

    FIELDS = (
        Field(1, "queue_name", "string"),
        Field(2, "enqueue_op_name", "string", repeated=True),
        Field(3, "close_op_name", "string"),
        Field(4, "cancel_op_name", "string"),
        Field(5, "queue_closed_exception_types", _ERROR_CODES, repeated=True),
    )


class ValuesDef(Message):
    """The values of a control-flow context: its own, and those from outside by the name that they have inside."""

    FIELDS = (Field(1, "values", "string", repeated=True), Field(2, "external_values", "string", key="string"))


class CondContextDef(Message):
    """A branch of ``cond``."""

    FIELDS = (
        Field(1, "context_name", "string"),
        Field(2, "pred_name", "string"),
        Field(3, "pivot_name", "string"),
        Field(4, "branch", "int32"),
        Field(5, "values_def", ValuesDef),
        Field(6, "nested_contexts", "ControlFlowContextDef", repeated=True),
    )


class WhileContextDef(Message):
    """A ``while_loop``."""

    FIELDS = (
        Field(1, "context_name", "string"),
        Field(2, "parallel_iterations", "int32"),
        Field(3, "back_prop", "bool"),
        Field(4, "swap_memory", "bool"),
        Field(5, "pivot_name", "string"),
        Field(6, "pivot_for_pred_name", "string"),
        Field(7, "pivot_for_body_name", "string"),
        Field(8, "loop_exit_names", "string", repeated=True),
        Field(9, "values_def", ValuesDef),
        Field(10, "loop_enter_names", "string", repeated=True),
        Field(11, "maximum_iterations_name", "string"),
        Field(12, "nested_contexts", "ControlFlowContextDef", repeated=True),
    )


class ControlFlowContextDef(Message):
    """A control-flow context within another one."""

    FIELDS = (
        Field(1, "cond_ctxt", CondContextDef, oneof="ctxt"),
        Field(2, "while_ctxt", WhileContextDef, oneof="ctxt"),
    )


# -- structured values ---------------------------------------------------------------------------------


class NoneValue(Message):
    """Nothing."""


class TensorSpecProto(Message):
    """What a tensor has to be."""

    FIELDS = (Field(1, "name", "string"), Field(2, "shape", TensorShapeProto), Field(3, "dtype", DATA_TYPE))


class BoundedTensorSpecProto(Message):
    """What a tensor has to be, and between which values its elements lie."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "shape", TensorShapeProto),
        Field(3, "dtype", DATA_TYPE),
        Field(4, "minimum", TensorProto),
        Field(5, "maximum", TensorProto),
    )


class ListValue(Message):
    """A list."""

    FIELDS = (Field(1, "values", "StructuredValue", repeated=True),)


class TupleValue(Message):
    """A tuple."""

    FIELDS = (Field(1, "values", "StructuredValue", repeated=True),)


class DictValue(Message):
    """A dictionary."""

    FIELDS = (Field(1, "fields", "StructuredValue", key="string"),)


class PairValue(Message):
    """A value with a name."""

    FIELDS = (Field(1, "key", "string"), Field(2, "value", "StructuredValue"))


class NamedTupleValue(Message):
    """A tuple whose places have names."""

    FIELDS = (Field(1, "name", "string"), Field(2, "values", PairValue, repeated=True))


_SPEC_CLASSES: Final = Enumeration(
    __name__,
    "TypeSpecClass",
    {
        name: number
        for start, names in (
            (0, "UNKNOWN SPARSE_TENSOR_SPEC INDEXED_SLICES_SPEC RAGGED_TENSOR_SPEC TENSOR_ARRAY_SPEC"),
            (5, "DATA_DATASET_SPEC DATA_ITERATOR_SPEC OPTIONAL_SPEC PER_REPLICA_SPEC VARIABLE_SPEC ROW_PARTITION_SPEC"),
            (12, "REGISTERED_TYPE_SPEC EXTENSION_TYPE_SPEC"),
        )
        for number, name in enumerate(names.split(), start)
    },
)


class TypeSpecProto(Message):
    """What a value that is made of tensors has to be."""

    FIELDS = (
        Field(1, "type_spec_class", _SPEC_CLASSES),
        Field(2, "type_state", "StructuredValue"),
        Field(3, "type_spec_class_name", "string"),
        Field(4, "num_flat_components", "int32"),
    )


class StructuredValue(Message):
    """A nest of values."""

    FIELDS = (
        Field(1, "none_value", NoneValue, oneof="kind"),
        Field(11, "float64_value", "double", oneof="kind"),
        Field(12, "int64_value", "sint64", oneof="kind"),
        Field(13, "string_value", "string", oneof="kind"),
        Field(14, "bool_value", "bool", oneof="kind"),
        Field(31, "tensor_shape_value", TensorShapeProto, oneof="kind"),
        Field(32, "tensor_dtype_value", DATA_TYPE, oneof="kind"),
        Field(33, "tensor_spec_value", TensorSpecProto, oneof="kind"),
        Field(34, "type_spec_value", TypeSpecProto, oneof="kind"),
        Field(35, "bounded_tensor_spec_value", BoundedTensorSpecProto, oneof="kind"),
        Field(51, "list_value", ListValue, oneof="kind"),
        Field(52, "tuple_value", TupleValue, oneof="kind"),
        Field(53, "dict_value", DictValue, oneof="kind"),
        Field(54, "named_tuple_value", NamedTupleValue, oneof="kind"),
        Field(55, "tensor_value", TensorProto, oneof="kind"),
        Field(56, "numpy_value", TensorProto, oneof="kind"),
    )


# -- signatures ----------------------------------------------------------------------------------------


class SparseTensorInfo(Message):
    """A sparse tensor: the names of its three tensors."""

    FIELDS = (
        Field(1, "values_tensor_name", "string"),
        Field(2, "indices_tensor_name", "string"),
        Field(3, "dense_shape_tensor_name", "string"),
    )


class CompositeTensorInfo(Message):
    """A value that is made of tensors."""

    FIELDS = (Field(1, "type_spec", TypeSpecProto), Field(2, "components", "TensorInfo", repeated=True))


class TensorInfo(Message):
    """A tensor of a graph: its ``name``, ``dtype`` and ``tensor_shape``."""

    FIELDS = (
        Field(1, "name", "string", oneof="encoding"),
        Field(2, "dtype", DATA_TYPE),
        Field(3, "tensor_shape", TensorShapeProto),
        Field(4, "coo_sparse", SparseTensorInfo, oneof="encoding"),
        Field(5, "composite_tensor", CompositeTensorInfo, oneof="encoding"),
    )

    CooSparse = SparseTensorInfo
    CompositeTensor = CompositeTensorInfo


class SignatureDef(Message):
    """What a model takes in ``inputs`` and gives in ``outputs``, and for what, in ``method_name``."""

    FIELDS = (
        Field(1, "inputs", TensorInfo, key="string"),
        Field(2, "outputs", TensorInfo, key="string"),
        Field(3, "method_name", "string"),
        Field(4, "defaults", TensorProto, key="string"),
    )


class AssetFileDef(Message):
    """A file that a model needs, and the tensor that holds its name."""

    FIELDS = (Field(1, "tensor_info", TensorInfo), Field(2, "filename", "string"))


# -- the objects of TensorFlow 2's models --------------------------------------------------------------


class ObjectReference(Message):
    """An object that another one holds under a name."""

    FIELDS = (Field(1, "node_id", "int32"), Field(2, "local_name", "string"))


class SlotVariableReference(Message):
    """A slot that an optimizer keeps for a variable."""

    FIELDS = (
        Field(1, "original_variable_node_id", "int32"),
        Field(2, "slot_name", "string"),
        Field(3, "slot_variable_node_id", "int32"),
    )


class SerializedTensor(Message):
    """A value of an object: its ``name``, that of its variable, and the key under which the checkpoint has it."""

    FIELDS = (
        Field(1, "name", "string"),
        Field(2, "full_name", "string"),
        Field(3, "checkpoint_key", "string"),
        Field(4, "optional_restore", "bool"),
    )


class TrackableObject(Message):
    """An object whose values are in a checkpoint, or which holds such objects."""

    ObjectReference: ClassVar[type[Message]] = ObjectReference
    SerializedTensor: ClassVar[type[Message]] = SerializedTensor
    SlotVariableReference: ClassVar[type[Message]] = SlotVariableReference

    FIELDS = (
        Field(1, "children", ObjectReference, repeated=True),
        Field(2, "attributes", SerializedTensor, repeated=True),
        Field(3, "slot_variables", SlotVariableReference, repeated=True),
    )


class TrackableObjectGraph(Message):
    """The objects of a checkpoint; the first one leads to all others."""

    TrackableObject: ClassVar[type[Message]] = TrackableObject

    FIELDS = (Field(1, "nodes", TrackableObject, repeated=True),)


class SavedUserObject(Message):
    """An object of a class that the program knows."""

    FIELDS = (Field(1, "identifier", "string"), Field(2, "version", VersionDef), Field(3, "metadata", "string"))


class SavedAsset(Message):
    """A file that a model needs, by its place in the meta graph."""

    FIELDS = (Field(1, "asset_file_def_index", "int32"),)


_JIT_COMPILE: Final = Enumeration(__name__, "JitCompile", {"DEFAULT": 0, "ON": 1, "OFF": 2})


class FunctionSpec(Message):
    """The Python signature of a function."""

    FIELDS = (
        Field(1, "fullargspec", StructuredValue),
        Field(2, "is_method", "bool"),
        Field(5, "input_signature", StructuredValue),
        Field(6, "jit_compile", _JIT_COMPILE),
    )


class SavedFunction(Message):
    """A function with the graphs that were made of it."""

    FIELDS = (Field(1, "concrete_functions", "string", repeated=True), Field(2, "function_spec", FunctionSpec))


class SavedVariable(Message):
    """A variable."""

    FIELDS = (
        Field(1, "dtype", DATA_TYPE),
        Field(2, "shape", TensorShapeProto),
        Field(3, "trainable", "bool"),
        Field(4, "synchronization", _SYNCHRONIZATIONS),
        Field(5, "aggregation", _AGGREGATIONS),
        Field(6, "name", "string"),
        Field(7, "device", "string"),
        Field(8, "experimental_distributed_variable_components", "SavedVariable", repeated=True),
    )


class SavedBareConcreteFunction(Message):
    """A function of which there is one graph."""

    FIELDS = (
        Field(1, "concrete_function_name", "string"),
        Field(2, "argument_keywords", "string", repeated=True),
        Field(3, "allowed_positional_arguments", "int64"),
        Field(4, "function_spec", FunctionSpec),
    )


class SavedConstant(Message):
    """A constant: the name of its operation."""

    FIELDS = (Field(1, "operation", "string"),)


class SavedResource(Message):
    """A resource, such as a table."""

    FIELDS = (Field(1, "device", "string"),)


class CapturedTensor(Message):
    """A tensor that a function reads from outside."""

    FIELDS = (Field(1, "name", "string"), Field(2, "concrete_function", "string"))


class SaveableObject(Message):
    """The functions that save and restore an object."""

    FIELDS = (Field(2, "save_function", "int32"), Field(3, "restore_function", "int32"))


class SavedObject(Message):
    """An object of a program, and what it holds."""

    FIELDS = (
        Field(1, "children", ObjectReference, repeated=True),
        Field(3, "slot_variables", SlotVariableReference, repeated=True),
        Field(4, "user_object", SavedUserObject, oneof="kind"),
        Field(5, "asset", SavedAsset, oneof="kind"),
        Field(6, "function", SavedFunction, oneof="kind"),
        Field(7, "variable", SavedVariable, oneof="kind"),
        Field(8, "bare_concrete_function", SavedBareConcreteFunction, oneof="kind"),
        Field(9, "constant", SavedConstant, oneof="kind"),
        Field(10, "resource", SavedResource, oneof="kind"),
        Field(11, "saveable_objects", SaveableObject, key="string"),
        Field(12, "captured_tensor", CapturedTensor, oneof="kind"),
        Field(13, "registered_name", "string"),
        Field(14, "serialized_user_proto", PackedMessage),
        Field(15, "dependencies", ObjectReference, repeated=True),
        Field(16, "registered_saver", "string"),
    )


class SavedConcreteFunction(Message):
    """A graph of a function: the objects that it reads, and what it takes and returns."""

    FIELDS = (
        Field(2, "bound_inputs", "int32", repeated=True),
        Field(3, "canonicalized_input_signature", StructuredValue),
        Field(4, "output_signature", StructuredValue),
    )


class SavedObjectGraph(Message):
    """The objects of a program, the first of which holds the others."""

    FIELDS = (
        Field(1, "nodes", SavedObject, repeated=True),
        Field(2, "concrete_functions", SavedConcreteFunction, key="string"),
    )


# -- meta graphs ---------------------------------------------------------------------------------------


class MetaInfo(Message):
    """Versions and tags of a meta graph."""

    FIELDS = (
        Field(1, "meta_graph_version", "string"),
        Field(2, "stripped_op_list", OpList),
        Field(3, "any_info", PackedMessage),
        Field(4, "tags", "string", repeated=True),
        Field(5, "tensorflow_version", "string"),
        Field(6, "tensorflow_git_version", "string"),
        Field(7, "stripped_default_attrs", "bool"),
        Field(8, "function_aliases", "string", key="string"),
    )


class MetaGraphDef(Message):
    """A graph in ``graph_def`` with its collections, saver, signatures and files."""

    FIELDS = (
        Field(1, "meta_info_def", MetaInfo),
        Field(2, "graph_def", GraphDef),
        Field(3, "saver_def", SaverDef),
        Field(4, "collection_def", CollectionDef, key="string"),
        Field(5, "signature_def", SignatureDef, key="string"),
        Field(6, "asset_file_def", AssetFileDef, repeated=True),
        Field(7, "object_graph_def", SavedObjectGraph),
    )

    MetaInfoDef = MetaInfo


class SavedModel(Message):
    """Meta graphs, which are told apart by their tags."""

    FIELDS = (Field(1, "saved_model_schema_version", "int64"), Field(2, "meta_graphs", MetaGraphDef, repeated=True))
