"""The group ``network``: the U-shaped residual network and its presets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cosmictagger.configuration.choices import (
    Connection,
    ConvMode,
    DataFormat,
    DownSampling,
    GrowthRate,
    Norm,
    UpSampling,
)


@dataclass
class Network:
    """The structure of the network.

    Large because each field is an option of the group ``network``.
    """

    name: str = "uresnet"
    bias: bool = True
    normalization: Norm = Norm.batch
    n_initial_filters: int = 16
    blocks_per_layer: int = 2
    blocks_deepest_layer: int = 5
    blocks_final: int = 5
    depth: int = 6
    """How many times the network halves the image."""

    filter_size_deepest: int = 5
    bottleneck_deepest: int = 256
    residual: bool = True
    block_concat: bool = False
    """Keep the planes separate in the deepest block too."""

    weight_decay: float = 0.0
    """The L2 term of the original's TensorFlow trainer. Neither framework has it here, so only 0 is accepted."""

    connections: Connection = Connection.concat
    conv_mode: ConvMode = ConvMode.conv_2D
    growth_rate: GrowthRate = GrowthRate.additive
    downsampling: DownSampling = DownSampling.max_pooling
    upsampling: UpSampling = UpSampling.interpolation
    event_label: bool = False
    """Also classify the event."""

    vertex: bool = False
    """Also find the neutrino's vertex."""

    data_format: DataFormat = DataFormat.channels_first
    """Set from data.data_format at the start."""


URESNET = Network()
A21 = replace(URESNET, name="A21", n_initial_filters=8, residual=False, blocks_final=0, connections=Connection.sum)
PRESETS: dict[str, Network] = {
    "uresnet": URESNET,
    "a21": A21,
    "a21_2023": replace(A21, name="A21_2023", blocks_final=5, connections=Connection.concat),
    "scc21": replace(URESNET, name="scc21", normalization=Norm.none),
    "polaris": replace(
        URESNET,
        name="polaris",
        blocks_deepest_layer=2,
        blocks_final=2,
        depth=7,
        bottleneck_deepest=96,
        residual=False,
        connections=Connection.sum,
    ),
    "uresnet3d": replace(URESNET, name="uresnet3d", conv_mode=ConvMode.conv_3D),
}
"""The values of ``network=``."""
