"""What the plugin hooks and calls in the engine's V4.1 indexer and sparse attention, on CUDA."""

from tetraspark.engine.drift import Target
from tetraspark.engine.hook import Hook

INDEXER = "sglang.srt.layers.attention.dsv4.v41_indexer"
BACKEND = "sglang.srt.layers.attention.deepseek_v4_backend.DeepseekV4AttnBackend"
KERNELS = "sglang.kernels.ops.attention"


def _target(path: str, sha256: str, file: str) -> Target:
    return Target(path, (sha256,), f"src/tetraspark/engine/{file}.py")


def _around(path: str, sha256: str, function: str) -> Hook:
    """Return a hook of type AROUND; `function` is `file:name` in this folder."""
    target = _target(path, sha256, function.split(":")[0])
    return Hook(target, f"tetraspark.engine.{function}", "AROUND", "scheduler", "cuda")


INDEXER_HOOKS = (
    _around(
        f"{INDEXER}.make_candidate_indexer",
        "2b7d2689cb1a3c149dfcf7a823fb5682b7956a55459ac702dc74a91c74336737",
        "candidate_indexer:around_make_candidate_indexer",
    ),
    _around(
        f"{BACKEND}.init_forward_metadata_indexer",
        "9958d50ae38642307818cafdd4c90ff1623533fb99f0de687762b6c8bd10162f",
        "candidate_indexer:around_indexer_metadata",
    ),
    _around(
        f"{BACKEND}._low_ratio_index_topk",
        "3d41c906410b547d92458417f5395ebe875f67fbac4fd10eeabe952ec6ef2336",
        "prefill_scope:around_index_topk",
    ),
    _around(
        f"{INDEXER}.scoring.dense_prefill_topk",
        "2ab42647567140be7846e4895fd984f8dfc8ac44695918f831f3ac761791b0fa",
        "prefill_split:around_full_topk",
    ),
    _around(
        f"{INDEXER}.dense_blocks._publish_prefill_blocks",
        "ef8d1210f67a1366beba73e4c4fed2cd4837f4a665150917a507705e6e2482af",
        "prefill_split:around_publish",
    ),
    _around(
        f"{INDEXER}.dense_blocks._consume_prefill_blocks",
        "7cd81ab1b04ee5b563dc661a94b175b0a8e6e6d00ae4fdaf6248769989e1c1ed",
        "prefill_split:around_consume",
    ),
    _around(
        f"{INDEXER}.dense_blocks.BlockIds.tail",
        "4146eaef41ebb573f62bfa63db339214ccf1884901b8350396169f0a2059e8d6",
        "prefill_split:around_tail",
    ),
    _around(
        f"{KERNELS}.flash_mla_sm120._split_kv_pages_to_64",
        "924741e2e31a3d0d962ea93e911b8310e5f711d8e9f777651ffed2d9aa61d58d",
        "sparse_scratch:around_split_pages",
    ),
)

INDEXER_CALLED = (
    _target(
        f"{INDEXER}._use_deep_gemm_prefill",
        "22ddcb9bb29db8dbbab55de1d139544e83b8768c3a9e939026e731d715f9158e",
        "candidate_indexer",
    ),
    _target(
        f"{INDEXER}.scoring.DeepGEMMPrefillData",
        "dc8316933fbf478629e3f9adb9a9d4ae8378dbe6679cd4b9172f19d55e2b9b32",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.scoring.DeepGEMMDecodeData",
        "414f085176118aa648c18ee66da56f2f417915449d59d30e5eff75fb128350ea",
        "paged_candidates",
    ),
    _target(
        f"{INDEXER}.scoring.get_deep_gemm_prefill_data",
        "884ecbc283b6aa58a439041251de69ab8a0fcc305743a988894cd6f285b2b465",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.scoring.get_deep_gemm_decode_data",
        "6f2511457ad5f7c98be8d7e2f37900c8bde101f262ad1e0bc37871ebf35f0fa9",
        "paged_candidates",
    ),
    _target(
        f"{INDEXER}.scoring.score_tiles",
        "dc7bb711b2b040ce25a6b972e6daacac04d3f09cf2c264c15380d91fa925ec43",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.scoring.topk_ragged",
        "3ff74f974683f1b889d0b281d265c8c957d31adee74a78e472b105b181196a4a",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.dense_blocks.BlockIds",
        "a59c11e7eaedebf3c784f9ed291b43419d0ff2f275e95b47d38585118f48bd75",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.dense_blocks.DenseBlocksBackend",
        "705e76b4af331329829036db804e880ad5644312902812f676018b6c13069e67",
        "candidate_indexer",
    ),
    _target(
        f"{INDEXER}.dense_blocks._publish_tile_blocks",
        "32eeb8b24d5eac51971b0fceaa37016a6d39cb1fadf0a9ff1a4b8196bfd043ef",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.dense_blocks._consume_tile_blocks",
        "45f98d50b390d534d84981d7e0b0d3fc710ade5bdb849cde727d68ace4b92411",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.dense_blocks._requests_in_tile",
        "fe6c1f916d0ba17a88a4c2daf0829e90a0916117d8f77279c76e09532063a383",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.full_topk.FullTopKIndexer",
        "a0b7cbfe0f041092bc0d234daf365134c19adfbcf79e4180eb598e1b47316c9f",
        "prefill_split",
    ),
    _target(
        f"{INDEXER}.types.DecodeInputs",
        "85c886481ffa0a1eb89bebe9ac884fc2c22b812d62af6dd148184e8ceed8dea8",
        "paged_candidates",
    ),
    _target(
        f"{KERNELS}.dsv4.index_logits.flat_index_logits_rows_per_tile",
        "ba2b943ff8f2081cd167f51b9d281b7479dd8ff4001eb98264771708b0bac87f",
        "prefill_split",
    ),
    _target(
        f"{KERNELS}.dsv4.index_logits.flat_index_logits_tiles",
        "64d8ebfd9225804559bee372d55e62db383927b330c67e05f668cb3f4fdfb422",
        "prefill_split",
    ),
    _target(
        f"{KERNELS}.dsv4.index_logits.deep_gemm_fp4_paged_mqa_logits",
        "9190189007343231ca9811cf69afdb0fbb356fb1916cffbd7596eb12fa2565ba",
        "paged_candidates",
    ),
    _target(
        f"{KERNELS}.dsv4.candidate_blocks.amax_topk_blocks",
        "544048999266dc375230fa901cf02c5f52b7cf09a7e68500bb0fe5df05900c52",
        "paged_candidates",
    ),
    _target(
        f"{KERNELS}.dsv4.candidate_blocks.topk_among_blocks",
        "a72eaa3b6b55785f90f60dbf19fdb23d75e45ae32136d8ccc304dd36395f16c3",
        "paged_candidates",
    ),
    _target(
        f"{KERNELS}.dsv4.candidate_blocks.select_candidate_block_ids",
        "831e1c1fb79f3e47cc2f609c9fe031b9dd855f10378779cc873a360ed2aa7d33",
        "prefill_split",
    ),
    _target(
        f"{KERNELS}.dsv4.topk.plan_topk_v2",
        "165a965163b581f75b317091cd21d98e9e0e91ee39ef7f0a6e8f33e0851c0fb6",
        "paged_candidates",
    ),
    _target(
        "sglang.srt.layers.attention.dsv4.indexer.topk_transform_paged_from_metadata",
        "d5bceef745aeaf680953021343353216aa39f161db2f15d5e722dbbb2769d12b",
        "paged_candidates",
    ),
    _target(
        "sglang.srt.layers.attention.dsv4.metadata.PagedIndexerMetadata",
        "f3f21bb53cbf087fabf86be61b31d2341044d7b5b2b5cbf0c62c8846e476afdf",
        "paged_candidates",
    ),
    _target(
        "sglang.srt.runtime_context.get_parallel",
        "75d1c5f8a754b0424f79d5ade3c47daa167bbbc6210e7afce34a82d03d193b71",
        "prefill_scope",
    ),
    _target(
        "sglang.srt.runtime_context.get_resources",
        "c211023d215f9406f3b957e32764c875ed63b8e5d68796dda1426bd542a6678b",
        "sparse_scratch",
    ),
    _target(
        "sglang.srt.runtime_context.get_platform",
        "b2d09fdd40ee1e5a758bad5b4b3ea66305fa7aabf802ab1a105ed45d148f0c9d",
        "candidate_indexer",
    ),
    _target(
        "sglang.srt.model_executor.runner_utils.capture_mode.get_is_capture_mode",
        "859f3da801eea59727eb67f8a077bd081a223b142dbe20466a68044e3a0a66c2",
        "prefill_scope",
    ),
)
"""Called, or relied upon by a hook: a change here breaks the plugin just as surely."""
