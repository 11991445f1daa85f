"""Weights in the layouts of both frameworks."""

import numpy as np
import tensorflow as tf
import torch

from cosmictagger.tensorflow.layout import to_tensorflow, to_torch


def test_a_kernel_gives_the_same_convolution_in_both_layouts():
    torch.manual_seed(0)
    kernel, image = torch.randn(5, 2, 3, 3), torch.randn(1, 2, 6, 7)
    wanted = torch.nn.functional.conv2d(image, kernel, padding=1).permute(0, 2, 3, 1)
    found = tf.nn.conv2d(image.permute(0, 2, 3, 1).numpy(), to_tensorflow(kernel), 1, "SAME")
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-5)


def test_the_kernel_of_a_transposed_convolution_follows_the_same_rule():
    torch.manual_seed(0)
    kernel, image = torch.randn(2, 5, 2, 2), torch.randn(1, 2, 3, 4)
    wanted = torch.nn.functional.conv_transpose2d(image, kernel, stride=2).permute(0, 2, 3, 1)
    found = tf.nn.conv2d_transpose(image.permute(0, 2, 3, 1).numpy(), to_tensorflow(kernel), wanted.shape, 2, "VALID")
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), atol=1e-5)


def test_there_and_back_gives_the_same_values_in_memory_of_their_own():
    for values in (torch.randn(4, 3, 2, 1), torch.randn(4), torch.tensor(7)):
        copied = to_torch(to_tensorflow(values))
        assert copied.dtype == values.dtype
        assert torch.equal(copied, values)
        assert copied.data_ptr() != values.data_ptr()
