"""Optimizers."""

from __future__ import annotations

from tools.parity.rows import Sort, Table, arguments, rows

_MOMENTS = "accum_type first_order_momentum_accum_type second_order_momentum_accum_type"

_ARGUMENTS = {
    "SGD": "params lr momentum dampening weight_decay nesterov loss_scaling accum_type velocity_accum_type "
    "max_grad_norm",
    "Adam": f"params lr betas eps weight_decay amsgrad loss_scaling {_MOMENTS} max_grad_norm",
    "AdamW": f"params lr betas eps weight_decay amsgrad loss_scaling bias_correction {_MOMENTS} max_grad_norm",
    "RMSprop": f"params lr alpha eps weight_decay momentum centered loss_scaling {_MOMENTS} use_tf_variant",
    "LAMB": f"params lr betas eps weight_decay bias_correction loss_scaling max_weight_norm {_MOMENTS}",
}

_COMBINED = {
    "optim.SGD(use_combined_accum)": "accepted; the results are the same",
    "optim.SGD(velocity_scaling)": "a value of each group, without effect on results",
}

TABLES = (
    Table(
        title="Optimizers",
        rows=rows(
            works="optim.Optimizer optim.SGD optim.Adam optim.AdamW optim.RMSprop optim.LAMB optim.VariableAttributes "
            "_optimizer_attributes.VariableAttributes"
        ),
    ),
    Table(
        title="Arguments of optimizers",
        sort=Sort.ARGUMENTS,
        rows=arguments({f"optim.{name}": names for name, names in _ARGUMENTS.items()}, differs=_COMBINED),
    ),
    Table(
        title="State of optimizers",
        of="optim.Adam",
        rows=rows(
            works="variable_attrs state_dict load_state_dict has_state get_state_dict set_state_dict "
            "ipu_state_is_dirty "
            "host_state_is_dirty step loss_scaling max_grad_norm accum_type"
        ),
    ),
    Table(
        title="Constant and variable attributes",
        of="VariableAttributes",
        rows=rows(works="isConstant markAsConstant markAsVariable"),
    ),
    Table(
        title="What optimizers do",
        sort=Sort.BEHAVIOURS,
        rows=rows(
            noted={
                "Values are read only in `setOptimizer`": "",
                "Arguments that are given may vary, the others are constants": "",
                "A changed constant is refused after compilation": "",
                "Unexpected attributes are reported once each": "",
                "A custom class gives a warning: its Python code does not run": "",
                "`ipu_state` and `ipu_param` carry PopTorch's names, and load again from files": "loaded values count "
                "until a setting of the optimizer is changed and set; those of constant attributes are ignored, and "
                "all parameters share one `Step___`, the largest that is loaded",
                "`ipu_state['lossScaleUpdateFactor']` under automatic loss scaling": "",
                "torch's SGD, Adam, AdamW and RMSprop are taken too": "",
                "accum_type float16 pools a running mean; after compilation it cannot be chosen": "",
            }
        ),
    ),
)
