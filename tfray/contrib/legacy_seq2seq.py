"""The names of ``tf.contrib.legacy_seq2seq``, once ``tf.nn.seq2seq``."""

# isort: skip_file
from tfray.library.rnn.legacy_seq2seq import (
    attention_decoder as attention_decoder,
    basic_rnn_seq2seq as basic_rnn_seq2seq,
    embedding_attention_decoder as embedding_attention_decoder,
    embedding_attention_seq2seq as embedding_attention_seq2seq,
    embedding_rnn_decoder as embedding_rnn_decoder,
    embedding_rnn_seq2seq as embedding_rnn_seq2seq,
    model_with_buckets as model_with_buckets,
    rnn_decoder as rnn_decoder,
    sequence_loss as sequence_loss,
    sequence_loss_by_example as sequence_loss_by_example,
    tied_rnn_seq2seq as tied_rnn_seq2seq,
)
