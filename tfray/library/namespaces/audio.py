"""``tf.audio``: WAV files."""

from tfray.ops.strings.audio_codec_ops import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]
