import tensorflow as tf

from src.config.config import ComputeMode
from src.utils.core.trainercore import trainercore


class tf_trainer(trainercore):

    def __init__(self, args):
        trainercore.__init__(self, args)

    def initialize(self, io_only=False):
        tf.random.set_seed(self.args.run.seed)
        self._net = tf.keras.Sequential([tf.keras.layers.Conv2D(3, 3, padding="same")])
        self._opt = tf.keras.optimizers.Adam(self.args.mode.optimizer.learning_rate)

    def default_device(self):
        if self.args.run.compute_mode == ComputeMode.CPU:
            return tf.device("CPU:0")
        elif self.args.run.compute_mode == ComputeMode.GPU:
            return tf.device("GPU:0")

    def train_step(self):
        batch = self.fetcher.fetch_next_batch(self.args.run.minibatch_size)
        with self.default_device(), tf.GradientTape() as tape:
            logits = self._net(batch["image"], training=True)
            loss = tf.reduce_mean(tf.square(logits - batch["label"]))
        gradients = tape.gradient(loss, self._net.trainable_variables)
        self._opt.apply_gradients(zip(gradients, self._net.trainable_variables))
        self._global_step += 1

    def checkpoint(self):
        pass
