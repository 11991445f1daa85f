"""The operations that a program from any file may call.

Each only computes new tensors, or new values of its tensor arguments: it accesses no file, no other process and no
memory outside its tensors. The list was made from the operations that sweeps over torch's own test databases capture,
plus their variants with a separate kernel, and reviewed by hand; `tests/sweeps/test_files.py` compares the two. New
operations of torch are refused until someone has reviewed them.
"""

from __future__ import annotations

from collections.abc import Mapping

_NEW_TENSORS = """
__lshift__ __rshift__ _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d
_adaptive_avg_pool3d_backward _assert_async _batch_norm_no_update _batch_norm_with_update _cdist_backward
_cdist_forward _chunk_cat _conj _conj_copy _conj_physical _dirichlet_grad _efficientzerotensor _embedding_bag
_embedding_bag_backward _embedding_bag_forward_only _embedding_bag_per_sample_weights_backward _euclidean_dist
_fft_c2c _fft_c2r _fft_r2c _functional_assert_async _fused_rms_norm _fused_rms_norm_backward _histogramdd_bin_edges
_histogramdd_from_bin_cts _histogramdd_from_bin_tensors _is_all_true _is_any_true _linalg_check_errors _linalg_det
_linalg_eigh _linalg_eigvals _linalg_slogdet _linalg_solve_ex _linalg_svd _log_softmax _log_softmax_backward_data
_native_batch_norm_legit _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _neg_view
_neg_view_copy _pdist_backward _pdist_forward _prelu_kernel _prelu_kernel_backward _safe_softmax _sample_dirichlet
_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention_for_cpu_backward _scaled_mm
_scaled_mm_v2 _softmax _softmax_backward_data _standard_gamma _standard_gamma_grad _to_copy _trilinear _unsafe_index
_unsafe_index_put _unsafe_masked_index _unsafe_masked_index_put_accumulate _unsafe_view _upsample_bicubic2d_aa
_upsample_bicubic2d_aa_backward _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward _upsample_nearest_exact1d
_upsample_nearest_exact1d_backward _upsample_nearest_exact2d _upsample_nearest_exact2d_backward
_upsample_nearest_exact3d _upsample_nearest_exact3d_backward _weight_norm_interface _weight_norm_interface_backward
abs acos acosh adaptive_max_pool2d adaptive_max_pool2d_backward adaptive_max_pool3d adaptive_max_pool3d_backward add
addbmm addcdiv addcmul addmm addmv addr affine_grid_generator alias alias_copy all amax amin aminmax angle any arange
argmax argmin as_strided as_strided_copy as_strided_scatter asin asinh atan atan2 atanh avg_pool2d avg_pool2d_backward
avg_pool3d avg_pool3d_backward baddbmm bartlett_window batch_norm_backward bernoulli binary_cross_entropy
binary_cross_entropy_backward binary_cross_entropy_with_logits bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor blackman_window block_diag bmm bucketize cat cauchy ceil celu
channel_shuffle cholesky cholesky_inverse cholesky_solve clamp clamp_max clamp_min clone col2im complex
constant_pad_nd convolution convolution_backward copy copysign cos cosh count_nonzero cummax cummin cumprod cumsum
deg2rad detach detach_copy diag_embed diagonal diagonal_backward diagonal_copy diagonal_scatter digamma dist div dot
elu elu_backward embedding embedding_dense_backward embedding_renorm empty empty_like empty_permuted empty_strided eq
erf erfc erfinv exp exp2 expand expand_copy expm1 exponential eye fft_fftfreq fft_rfftfreq fill flip floor
floor_divide fmax fmin fmod frac fractional_max_pool2d fractional_max_pool2d_backward fractional_max_pool3d
fractional_max_pool3d_backward frexp full full_like gather gcd ge gelu gelu_backward geometric geqrf glu glu_backward
grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward gt hamming_window hann_window
hardshrink hardshrink_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh
hardtanh_backward hash_tensor heaviside histc histogram huber_loss huber_loss_backward hypot i0 igamma igammac im2col
index index_add index_copy index_fill index_put index_reduce index_select isin isinf isnan isneginf isposinf
kaiser_window kthvalue lcm ldexp le leaky_relu leaky_relu_backward lerp lgamma lift_fresh lift_fresh_copy
linalg_cholesky_ex linalg_cross linalg_eig linalg_householder_product linalg_inv_ex linalg_ldl_factor_ex
linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_factor_ex linalg_lu_solve linalg_matrix_exp linalg_pinv linalg_qr
linalg_solve_triangular linalg_vector_norm linspace log log10 log1p log2 log_normal log_sigmoid_backward
log_sigmoid_forward logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or logical_xor logit
logit_backward logspace logsumexp lt lu_unpack masked_fill masked_scatter masked_scatter_backward max
max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices max_pool3d_with_indices_backward
max_unpool2d max_unpool3d maximum mean median min minimum mish mish_backward mkldnn_rnn_layer
mkldnn_rnn_layer_backward mm mode mse_loss mse_loss_backward mul multi_margin_loss multi_margin_loss_backward
multilabel_margin_loss_backward multilabel_margin_loss_forward multinomial mv mvlgamma nan_to_num nanmedian nansum
narrow_copy native_batch_norm native_batch_norm_backward native_dropout native_dropout_backward native_group_norm
native_group_norm_backward native_layer_norm native_layer_norm_backward ne neg new_empty new_empty_strided new_full
new_ones new_zeros nextafter nll_loss2d_backward nll_loss2d_forward nll_loss_backward nll_loss_forward nonzero_static
norm normal normal_functional ones ones_like ormqr permute permute_copy pixel_shuffle pixel_unshuffle poisson polar
polygamma pow prod put rad2deg rand rand_like randint randint_like randn randn_like random randperm range reciprocal
reflection_pad1d reflection_pad1d_backward reflection_pad2d reflection_pad2d_backward reflection_pad3d
reflection_pad3d_backward relu remainder renorm repeat replication_pad1d replication_pad1d_backward
replication_pad2d replication_pad2d_backward replication_pad3d replication_pad3d_backward reshape roll rot90 round
rrelu_with_noise rrelu_with_noise_backward rrelu_with_noise_functional rsqrt rsub scalar_tensor scatter scatter_add
scatter_reduce searchsorted select select_backward select_copy select_scatter sgn sigmoid sigmoid_backward sign
signbit silu silu_backward sin sinc sinh slice slice_backward slice_copy slice_scatter smooth_l1_loss
smooth_l1_loss_backward soft_margin_loss soft_margin_loss_backward softplus softplus_backward softshrink
softshrink_backward sort special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
special_entr special_erfcx special_hermite_polynomial_h special_hermite_polynomial_he
special_i0e special_i1 special_i1e special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1
special_modified_bessel_k0 special_modified_bessel_k1 special_ndtri special_scaled_modified_bessel_k0
special_scaled_modified_bessel_k1 special_spherical_bessel_j0
special_xlog1py special_zeta split split_copy split_with_sizes split_with_sizes_copy sqrt squeeze squeeze_copy stack
std std_mean sub sum t t_copy take tan tanh tanh_backward threshold threshold_backward topk trace transpose
transpose_copy triangular_solve tril tril_indices triu triu_indices trunc unbind unbind_copy unfold unfold_backward
unfold_copy uniform unsafe_split unsqueeze unsqueeze_copy upsample_bicubic2d upsample_bicubic2d_backward
upsample_bilinear2d upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward upsample_nearest1d
upsample_nearest1d_backward upsample_nearest2d upsample_nearest2d_backward upsample_nearest3d
upsample_nearest3d_backward upsample_trilinear3d upsample_trilinear3d_backward var var_mean vdot view view_as_complex
view_as_complex_copy view_as_real view_as_real_copy view_copy where xlogy zero zeros zeros_like
"""

_IN_PLACE = """
__ilshift__ __irshift__ abs_ acos_ acosh_ add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ asin_ asinh_ atan2_ atan_
atanh_ baddbmm_ bernoulli_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_
cauchy_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ conj_physical_ copy_ copysign_ cos_ cosh_ cumprod_ cumsum_ deg2rad_
detach_ digamma_ div_ elu_ embedding_renorm_ eq_ erf_ erfc_ erfinv_ exp2_ exp_ expm1_ exponential_ fill_ floor_
floor_divide_ fmod_ frac_ gcd_ ge_ gelu_ geometric_ gt_ hardsigmoid_ hardswish_ hardtanh_ heaviside_ hypot_ i0_
igamma_ igammac_ index_add_ index_copy_ index_fill_ index_put_ index_reduce_ lcm_ ldexp_ le_ leaky_relu_ lerp_ lgamma_
log10_ log1p_ log2_ log_ log_normal_ logical_and_ logical_not_ logical_or_ logical_xor_ logit_ lt_ masked_fill_
masked_scatter_ mish_ mul_ mvlgamma_ nan_to_num_ ne_ neg_ nextafter_ normal_ polygamma_ pow_ put_ rad2deg_ random_
reciprocal_ relu_ remainder_ renorm_ round_ rrelu_with_noise_ rsqrt_ scatter_ scatter_add_ scatter_reduce_ sgn_
sigmoid_ sign_ silu_ sin_ sinc_ sinh_ sqrt_ squeeze_ sub_ t_ tan_ tanh_ threshold_ transpose_ tril_ triu_ trunc_
uniform_ unsqueeze_ xlogy_ zero_
"""

_OF_LISTS = """
_foreach_abs _foreach_abs_ _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_
_foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_ _foreach_ceil
_foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min _foreach_clamp_min_ _foreach_clone
_foreach_copy _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh _foreach_cosh_ _foreach_div _foreach_div_
_foreach_erf _foreach_erf_ _foreach_erfc _foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_
_foreach_floor _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma
_foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_ _foreach_log2
_foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_ _foreach_minimum _foreach_minimum_
_foreach_mm _foreach_mul _foreach_mul_ _foreach_neg _foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_
_foreach_powsum _foreach_reciprocal _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_
_foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_ _foreach_sinh
_foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_ _foreach_tan _foreach_tan_ _foreach_tanh
_foreach_tanh_ _foreach_trunc _foreach_trunc_ _foreach_zero _foreach_zero_
"""

_ON_CARDS = """
_conv_depthwise2d _cudnn_rnn _cudnn_rnn_backward _fused_dropout _scaled_dot_product_cudnn_attention
_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_efficient_attention
_scaled_dot_product_efficient_attention_backward _scaled_dot_product_flash_attention
_scaled_dot_product_flash_attention_backward _thnn_fused_gru_cell _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell
_thnn_fused_lstm_cell_backward_impl cudnn_batch_norm cudnn_batch_norm_backward
"""

ALLOWED = frozenset(f"{_NEW_TENSORS} {_IN_PLACE} {_OF_LISTS} {_ON_CARDS}".split())
"""Names without ``aten::``; variants with ``out=`` are not allowed."""

OWN_LIBRARIES = frozenset({"cosmictagger"})
OWN_OPERATIONS = frozenset({"poptorch::ctc_beam_search", "poptorch::farthest_points", "poptorch::print_tensor"})
"""Allowed operations of Pilotage's own packages; not ``poptorch::call_on_host``, which runs a Python function."""

_BY_DATA = "its kernel reads or writes at positions given by a tensor, without a check"
_WITHOUT_END = "its run time depends on the values of a tensor, without a limit"
_SPARSE = "the indices of a sparse tensor are not checked"
_RESIZES = "it changes the size of a tensor that others may use"

REASONS: Mapping[str, str] = {
    "from_file": "it reads and writes files",
    "save": "it writes files",
    "_print": "it writes to the terminal",
    **dict.fromkeys(
        ("_ctc_loss", "_ctc_loss_backward", "repeat_interleave", "segment_reduce", "_segment_reduce_backward"), _BY_DATA
    ),
    **dict.fromkeys(("binomial", "special_legendre_polynomial_p", "special_laguerre_polynomial_l"), _WITHOUT_END),
    **{f"special_{kind}chebyshev_polynomial_{letter}": _WITHOUT_END for kind in ("", "shifted_") for letter in "tuvw"},
    **dict.fromkeys(("_to_sparse", "_to_dense", "sparse_mask"), _SPARSE),
    **dict.fromkeys(("resize_", "resize_as_", "set_", "set_data"), _RESIZES),
}
"""Why some operations are refused, for the error message."""
