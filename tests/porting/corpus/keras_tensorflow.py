"""A TensorFlow script; only Gaudi has a port of it."""
import tensorflow as tf


def make_model():
    return tf.keras.Sequential([
        tf.keras.layers.Flatten(input_shape=(28, 28)),
        tf.keras.layers.Dense(10),
    ])


def main():
    (x_train, y_train), _ = tf.keras.datasets.mnist.load_data()
    model = make_model()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=tf.keras.optimizers.SGD(learning_rate=0.01), loss=loss, metrics=['accuracy'])
    model.fit(x_train / 255.0, y_train, epochs=1, batch_size=128)


if __name__ == '__main__':
    main()
