"""``tf.contrib.cudnn_rnn``: recurrent layers, time first, made of tfray's own cells: they need no cuDNN."""

from tfray.library.rnn.cudnn_rnn import (
    CUDNN_RNN_BIDIRECTION,
    CUDNN_RNN_UNIDIRECTION,
    CudnnCompatibleGRUCell,
    CudnnCompatibleLSTMCell,
    CudnnGRU,
    CudnnLSTM,
    CudnnRNNRelu,
    CudnnRNNTanh,
)

# fmt: off
__all__ = [
    "CUDNN_RNN_BIDIRECTION", "CUDNN_RNN_UNIDIRECTION", "CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell", "CudnnGRU",
    "CudnnLSTM", "CudnnRNNRelu", "CudnnRNNTanh",
]
# fmt: on
