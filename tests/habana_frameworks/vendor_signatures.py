"""The signatures of the vendor's bridge (1.19 and later): names, order and defaults of arguments, by dotted name."""

SIGNATURES = {
    # core
    "core.mark_step": "device_str='', sync=False",
    "core.iter_mark_step": "device_str=''",
    "core.add_step_closure": "closure, args=()",
    "core.is_lazy": "",
    "core.hpu_set_env": "model=None",
    "core.hpu_set_inference_env": "model=None",
    "core.hpu_initialize": "model=None, mark_only_scales_as_const=False, optimizer=None, args=None",
    "core.hpu_inference_initialize": "model=None, mark_only_scales_as_const=False, optimizer=None, args=None",
    "core.hpu_reset_env": "",
    "core.hpu_teardown_inference_env": "",
    "core.step_closure._mark_step_if_lazy": "device_str=''",
    "core.weight_sharing.enable_weight_sharing": "",
    # hpu: the device
    "hpu.is_available": "",
    "hpu.device_count": "",
    "hpu.current_device": "",
    "hpu.set_device": "device",
    "hpu.device": "device",
    "hpu.device_of": "obj",
    "hpu.get_device_name": "device=None",
    "hpu.get_device_properties": "device=None",
    "hpu.get_device_capability": "device=None",
    "hpu.get_arch_list": "",
    "hpu.get_gencode_flags": "",
    "hpu.can_device_access_peer": "device, peer_device",
    "hpu.init": "",
    "hpu.is_initialized": "",
    "hpu.synchronize": "",
    "hpu.is_bf16_supported": "",
    "hpu.is_autocast_hpu_enabled": "",
    "hpu.set_autocast_hpu_enabled": "enabled",
    "hpu.get_autocast_hpu_dtype": "",
    "hpu.set_autocast_hpu_dtype": "dtype",
    # hpu: settings
    "hpu.enable_dynamic_shape": "",
    "hpu.disable_dynamic_shape": "",
    "hpu.get_dynamic_shape_status": "",
    "hpu.enable_inference_mode": "",
    "hpu.disable_inference_mode": "",
    "hpu.enable_quantization": "",
    "hpu.disable_quantization": "",
    "hpu.enable_matmul3d_2d_reshape": "",
    "hpu.disable_matmul3d_2d_reshape": "",
    "hpu.enable_optim_output_sif": "",
    "hpu.disable_optim_output_sif": "",
    "hpu.enable_const_section_serialization": "path, clear_path, use_compression",
    "hpu.disable_const_section_serialization": "",
    "hpu.setDeterministic": "val",
    "hpu.getDeterministic": "",
    "hpu.set_sync_debug_mode": "debug_mode",
    "hpu.get_sync_debug_mode": "",
    "hpu.enable_recompute_sdp": "enabled",
    "hpu.recompute_sdp_enabled": "",
    "hpu.sdp_kernel": "enable_recompute=True",
    # hpu: memory and random numbers
    "hpu.memory_stats": "device=None",
    "hpu.memory_allocated": "device=None",
    "hpu.max_memory_allocated": "device=None",
    "hpu.memory_reserved": "device=None",
    "hpu.max_memory_reserved": "device=None",
    "hpu.memory_cached": "device=None",
    "hpu.max_memory_cached": "device=None",
    "hpu.mem_get_info": "device=None",
    "hpu.reset_peak_memory_stats": "device=None",
    "hpu.reset_accumulated_memory_stats": "device=None",
    "hpu.memory_summary": "device=None",
    "hpu.memory_usage": "device=None",
    "hpu.utilization": "device=None",
    "hpu.manual_seed": "seed",
    "hpu.manual_seed_all": "seed",
    "hpu.random.manual_seed_all": "seed",
    "hpu.seed": "",
    "hpu.seed_all": "",
    "hpu.initial_seed": "",
    "hpu.get_rng_state": "device='hpu'",
    "hpu.set_rng_state": "new_state, device='hpu'",
    "hpu.get_rng_state_all": "",
    "hpu.set_rng_state_all": "new_states",
    # hpu: streams and events
    "hpu.Stream": "device=None, priority=0",
    "hpu.StreamContext": "stream",
    "hpu.stream": "stream",
    "hpu.set_stream": "stream",
    "hpu.current_stream": "device=None",
    "hpu.default_stream": "device=None",
    "hpu.get_stream_info": "stream",
    "hpu.record_stream": "tensor, stream",
    "hpu.events.Event": "enable_timing=False",
    # hpu.graphs
    "hpu.graphs.graph": "hpu_graph, stream=None, dry_run=False",
    "hpu.graphs.wrap_in_hpu_graph": "module, asynchronous=False, disable_tensor_cache=False, dry_run=False, "
    "max_graphs=None",
    "hpu.graphs.wrap_in_hpu_graph_func": "func, asynchronous=False, disable_tensor_cache=False, dry_run=False, "
    "max_graphs=None",
    "hpu.graphs.make_graphed_callables": "callables, sample_args, warmups=0, allow_unused_input=False, "
    "asynchronous=False, disable_tensor_cache=False, dry_run=False",
    "hpu.graphs.ModuleCacher": "max_graphs=10",
    "hpu.graphs.ModuleCacher.forward": "self, model, use_lfu=False, inplace=True, allow_unused_input=False, "
    "asynchronous=False, have_grad_accumulation=False, log_frequency=100, verbose=False, disable_tensor_cache=False, "
    "dry_run=False",
    "hpu.graphs.CachedParams": "graph_inputs, graph_outputs, graph, out_tinfo_list=None, asynchronous=False",
    "hpu.graphs.GraphModel": "model, allow_unused_input=False, asynchronous=False, disable_tensor_cache=False, "
    "dry_run=False",
    "hpu.graphs.input_hash": "obj",
    "hpu.graphs.copy_to": "dst, src",
    "hpu.graphs.HPUGraph.capture_begin": "self, dry_run=False",
    "hpu.graphs.HPUGraph.capture_end": "self",
    "hpu.graphs.HPUGraph.replay": "self, asynchronous=False",
    "hpu.graphs.HPUGraph.replayV2": "self, static_tlist, tlist, asynchronous=False",
    "hpu.graphs.HPUGraph.replayV3": "self, tlistI, asynchronous=False",
    "hpu.graphs.HPUGraph.mark_user_inputs": "self, static_tlist",
    "hpu.graphs.HPUGraph.mark_user_outputs": "self, static_tlist",
    "hpu.graphs.is_current_stream_capturing": "",
    # hpu.metrics
    "hpu.metrics.metric_global": "name",
    "hpu.metrics.metric_localcontext": "name",
    "hpu.metric_localcontext": "name",
    "hpu.metrics.metrics_dump": "file_name, format=MetricDumpFormat.json",
    # hpex
    "hpex.optimizers.FusedAdamW": "params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, "
    "bias_correction=True, moments_dtype=None",
    "hpex.optimizers.FusedSGD": "params, lr, momentum=0, weight_decay=0, dampening=0, nesterov=False",
    "hpex.optimizers.FusedLamb": "params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-6, "
    "weight_decay=0.01, amsgrad=False, adam_w_mode=True, grad_averaging=True, set_grad_none=True, max_grad_norm=1.0, "
    "use_lamb=False, fused=False, dtype=None",
    "hpex.optimizers.FusedLars": "optimizer, skip_mask, eeta=0.001, eps=1e-8",
    "hpex.optimizers.FusedLars.zero_grad": "self, set_to_none=False",
    "hpex.optimizers.FusedResourceApplyMomentum": "params, lr, momentum=0, weight_decay=0, nesterov=False",
    "hpex.optimizers.FusedAdagrad": "params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, "
    "eps=1e-10",
    "hpex.optimizers.distributed.FusedAdamW": "params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, "
    "_allow_empty_param_list=False, moments_dtype=None",
    "hpex.normalization.FusedClipNorm": "parameters, max_norm",
    "hpex.normalization.FusedClipNorm.clip_norm": "self, parameters",
    "hpex.normalization.FusedRMSNorm.apply": "data_in, gamma, eps, use_stages=True, bwd_mode=0, fast_math=False, /",
    "hpex.movingavrg.FusedEMA": "model, decay=0.9999, updates=0",
    "hpex.movingavrg.FusedEMA.update": "self, model",
    "hpex.movingavrg.FusedEMA.update_attr": "self, model, include=(), exclude=('process_group', 'reducer')",
    "hpex.kernels.FusedSDPA.apply": "q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, "
    "softmax_mode='None', recompute_mode=None, valid_seq_len=None, seq_padding_type='left', "
    "return_dropout_mask=False, return_attn_probs=False, /",
    "hpex.kernels.RotaryPosEmbeddingHelperV1.apply": "p, cos, sin, offset, /",
    "hpex.kernels.RotaryPosEmbeddingHelperV2.apply": "p, cos, sin, position_ids, /",
    "hpex.kernels.RotaryPosEmbeddingHelperV3.apply": "p, rope_cache, /",
    "hpex.kernels.CTCLoss.apply": "log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', "
    "zero_infinity=False, /",
    "hpex.kernels.PySDPA.apply": "q, k, v, is_causal=False, with_slice=False, /",
    # utils, distributed, dynamo
    "utils.experimental._get_device_type": "",
    "utils.experimental._is_fp16_supported": "",
    "utils.experimental.detect_recompilation_auto_model": "model, mdlname='Net', waittime=1, csv_out='out'",
    "utils.experimental.data_dynamicity": "dl",
    "utils.experimental.const_shape_dataloader": "dl, maxlen",
    "utils.experimental._data_ptr": "t",
    "utils.experimental._compute_stream": "",
    "utils.debug._is_enabled_synapse_layout_handling": "",
    "utils.debug._is_enabled_weight_permute_pass": "",
    "utils.debug._is_enabled_lazy_collectives": "",
    "utils.debug.get_tensor_info": "tensor",
    "utils.debug.dynamo_utils.FxGraphAnalyzer": "reset_dynamo=False, capture_non_hpu_output=False",
    "utils.internal.is_lazy": "",
    "utils.internal.lazy_only": "func",
    "utils.library_loader.load_habana_module": "",
    "utils.library_loader.is_habana_available": "",
    "utils.library_loader.load_habana_profiler": "",
    "utils.distributed_utils.initialize_distributed_hpu": "",
    "distributed.hccl.initialize_distributed_hpu": "world_size=None, rank=None, local_rank=None",
    "dynamo.compile_backend.backends.hpu_backend": "graph_module, example_inputs, **kwargs",
    "dynamo.compile_backend.experimental.enable_compiled_autograd": "**kwargs",
}

MORE_HERE = {
    "hpu.synchronize": {"device"},
    "hpu.memory_summary": {"abbreviated"},
    "hpu.Stream": {"stream_id", "device_index", "device_type", "stream_ptr"},
    "hpu.events.Event": {"blocking", "interprocess"},
    "utils.distributed_utils.initialize_distributed_hpu": {"world_size", "rank", "local_rank"},
}
"""Arguments that only the emulation has; each has a default and follows the vendor's."""

NAMES = {
    "core": "hpu htdebug htexp quantization step_closure",
    "core.quantization": "hpu_set_env hpu_set_inference_env hpu_initialize hpu_inference_initialize hpu_reset_env "
    "hpu_teardown_inference_env",
    "hpu": "hpu htorch torch warnings HPUGraph graph wrap_in_hpu_graph ModuleCacher make_graphed_callables Event "
    "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor "
    "ShortTensor HABANA_VISIBLE_MODULES_VAR HLS_MODULE_ID_VAR default_generators empty_cache "
    "reset_max_memory_allocated",
    "hpu.random": "default_generators",
    "hpu.metrics": "MetricNotFound InvalidMetricDumpFileFormat InvalidMetricDumpTrigger MetricDumpFormat",
    "hpex.optimizers": "Adam AdamW SparseSGD SparseAdagrad FusedClipNorm",
    "hpex.normalization": "RmsNormBwdMode",
    "hpex.kernels": "RotaryPosEmbeddingMode apply_rotary_pos_emb CustomSoftmax PySDPAHinted fp8_fused_sdpa",
    "hpex.kernels.Softmax": "RaggedSoftmax triu_masked_softmax",
    "hpex.kernels.Fp8Ops": "cast_to_fp8_v2",
    "utils.experimental": "synDeviceType hpu",
    "utils.experimental._experimental_C": "synDeviceGaudi synDeviceGaudi2 synDeviceGaudi3",
    "utils.debug": "Logger _set_module_name _memstat_livealloc _hg_print _mem_log _dump_refined_recipe _enable_x "
    "_clear_jit_cache _get_jit_cache_size _get_fallback_op_count _bridge_cleanup load_ds_checkpoint",
    "utils.debug.utils": "dump_device_state_and_terminate",
    "utils.event_dispatcher": "EventDispatcher EventId",
    "utils.profiler": "_setup_profiler _start_profiler _stop_profiler",
    "utils.lib_utils": "get_include_dir get_lib_dir",
    "utils.experimental.distributed_emulation": "is_distributed_emulation_enabled "
    "distributed_emulation_apply_if_enabled",
    "profiler": "ProfilerApi",
    "low_overhead_profiler.profiler": "start stop flush",
    "activity_profiler": "DebugActivity profile",
    "dynamo.compile_backend": "hpu_backend",
    "dynamo.compile_backend.config": "configuration_flags use_compiled_recipes decomposition_mode "
    "keep_input_mutations use_eager_fallback use_graph_freezing discard_frozen_params remove_unnecessary_clones "
    "use_inplace_allreduce use_inplace_index_copy inference enable_sfg use_cpp_partitioner "
    "enable_allreduce_graph_split force_static_compile reinplace_add reassign_full_copy reassign_copy_ use_boxed_input",
    "core.hccl": "",
    "core.weight_sharing": "",
}
"""Names without a signature to compare, by module."""

REFUSED = {
    "core.quantize_pt2e": "PT2E quantization",
    "core.quantizer": "PT2E quantization",
    "core.observer": "PT2E quantization",
    "core.pattern_matcher": "PT2E quantization",
    "hpex.experimental.transformer_engine": "float8 training",
    "media_pyt_bridge": "media pipeline",
}
"""Modules whose import fails with a reason."""

OPERATIONS = (
    "cast_from_fp8 cast_to_fp8_v2 fp8_gemm_v2 mixture_of_experts optimizer_adamw rms_norm rms_norm_fast "
    "rotary_pos_embedding rotary_pos_embedding_backward softmax_fp8"
)
"""The operations of torch.ops.hpu; others must be unknown."""
