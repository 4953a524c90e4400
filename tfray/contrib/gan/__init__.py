"""``tf.contrib.gan``: generative adversarial networks: models, losses, training, and measures of them."""

from tfray.contrib.gan import estimator, eval, features, losses, namedtuples
from tfray.contrib.gan.models import acgan_model, cyclegan_model, gan_model, infogan_model, stargan_model
from tfray.contrib.gan.namedtuples import (
    ACGANModel,
    CycleGANLoss,
    CycleGANModel,
    GANLoss,
    GANModel,
    GANTrainOps,
    GANTrainSteps,
    InfoGANModel,
    StarGANModel,
)
from tfray.contrib.gan.train import (
    RunTrainOpsHook,
    cyclegan_loss,
    gan_loss,
    gan_train,
    gan_train_ops,
    get_joint_train_hooks,
    get_sequential_train_hooks,
    get_sequential_train_steps,
    stargan_loss,
)

# fmt: off
__all__ = [
    "ACGANModel", "CycleGANLoss", "CycleGANModel", "GANLoss", "GANModel", "GANTrainOps", "GANTrainSteps",
    "InfoGANModel", "RunTrainOpsHook", "StarGANModel", "acgan_model", "cyclegan_loss", "cyclegan_model", "estimator",
    "eval", "features", "gan_loss", "gan_model", "gan_train", "gan_train_ops", "get_joint_train_hooks",
    "get_sequential_train_hooks", "get_sequential_train_steps", "infogan_model", "losses", "namedtuples",
    "stargan_loss", "stargan_model",
]
# fmt: on
