"""HPU graphs: operations recorded once and replayed, and modules that run as such graphs."""

from __future__ import annotations

from habana_frameworks.torch.hpu.graphs.graphed import GraphModel as GraphModel
from habana_frameworks.torch.hpu.graphs.graphed import make_graphed_callables as make_graphed_callables
from habana_frameworks.torch.hpu.graphs.module_cacher import ModuleCacher as ModuleCacher
from habana_frameworks.torch.hpu.graphs.recording import HPUGraph as HPUGraph
from habana_frameworks.torch.hpu.graphs.recording import graph as graph
from habana_frameworks.torch.hpu.graphs.recording import is_current_stream_capturing as is_current_stream_capturing
from habana_frameworks.torch.hpu.graphs.signatures import CachedParams as CachedParams
from habana_frameworks.torch.hpu.graphs.signatures import copy_to as copy_to
from habana_frameworks.torch.hpu.graphs.signatures import extract_tensors as extract_tensors
from habana_frameworks.torch.hpu.graphs.signatures import get_tensor_info as get_tensor_info
from habana_frameworks.torch.hpu.graphs.signatures import get_user_input_tensor_list as get_user_input_tensor_list
from habana_frameworks.torch.hpu.graphs.signatures import input_hash as input_hash
from habana_frameworks.torch.hpu.graphs.wrapping import wrap_in_hpu_graph as wrap_in_hpu_graph
from habana_frameworks.torch.hpu.graphs.wrapping import wrap_in_hpu_graph_func as wrap_in_hpu_graph_func
