"""What the guards hook and call in the engine, with the source hashes they were written for."""

from tetraspark.engine.drift import Target
from tetraspark.engine.hook import Hook, Role, Type


def _target(path: str, sha256: str, file: str) -> Target:
    return Target(f"sglang.srt.{path}", (sha256,), f"src/tetraspark/engine/{file}.py")


def _hook(
    path: str, sha256: str, type: Type, role: Role, function: str, needs: str | None = None
) -> Hook:
    """Return a hook; `function` is `file:name` in this folder."""
    target = _target(path, sha256, function.split(":")[0])
    return Hook(target, f"tetraspark.engine.{function}", type, role, needs=needs)


GUARD_HOOKS = (
    _hook(
        "entrypoints.openai.serving_base.OpenAIServingBase.handle_request",
        "0a561b6b95dd5f0b49506b68540ddf704bd4da65350abd72259988cfe837b9e4",
        "AROUND",
        "server",
        "guard_server:around_handle_request",
    ),
    _hook(
        "entrypoints.anthropic.serving.AnthropicServing.handle_messages",
        "71ae50286b667af3e5c89315dbf38a22f9d961f8f70919babd6ab2c843d66f2d",
        "AROUND",
        "server",
        "guard_dialects:around_handle_messages",
    ),
    # Without that module the engine imports no such class, and serves no /v1/responses.
    _hook(
        "entrypoints.openai.serving_responses.OpenAIServingResponses.create_responses",
        "e489540af6f92d8dffd069e7916543c40c40ec1550415444164745c41cb60dc8",
        "AROUND",
        "server",
        "guard_dialects:around_create_responses",
        needs="openai_harmony",
    ),
    _hook(
        "managers.io_struct.GenerateReqInput.normalize_batch_and_arguments",
        "747f81a7ac995c2fc40ccf08c36d38b4f259cba1f31a37089fb4ee87afe75bcd",
        "BEFORE",
        "server",
        "guard_server:before_normalize",
    ),
    _hook(
        "managers.scheduler.Scheduler.init_req_max_new_tokens",
        "1abc60c5742826f1cafca5af9e4cc97e505ec73f0fd00e0ea081f1caefdef9d5",
        "BEFORE",
        "scheduler",
        "guard_scheduler:before_init_max_new_tokens",
    ),
    _hook(
        "managers.schedule_batch.Req.update_finish_state",
        "4a560c4925da82cf304dd99dbe1d9f4e6506aa461b9f3a2862f1cfb7de853170",
        "AFTER",
        "scheduler",
        "guard_scheduler:after_update_finish_state",
    ),
    _hook(
        "managers.detokenizer_manager.DetokenizerManager.trim_matched_stop",
        "f51321cb4e95c42feb8004182e13edb100d3babe419c50d22883c6aa6f65903d",
        "AROUND",
        "detokenizer",
        "guard_finish:around_trim",
    ),
)

GUARD_CALLED = (
    _target(
        "utils.json_response.model_json_response",
        "49f0cfc063366d27e874c44962fe6d54163f94c82f71b63a4bb39da79409dcf9",
        "guard_server",
    ),
    _target(
        "entrypoints.openai.protocol.ChatCompletionRequest",
        "5d5990ec978280f6a5a1a172972fe91f5d395316372ee895a2ac42ca24ca7f9f",
        "guard_server",
    ),
    _target(
        "entrypoints.openai.protocol.CompletionRequest",
        "1895974b4d5fa8e087bd89c9515c66bbf304b3aa4da748cd2b38449c43580e06",
        "guard_server",
    ),
    _target(
        "entrypoints.http_server.v1_responses_request",
        "21a34f7cd4aa815828b3a9f49a3f5c8e5e121844388dcaa232567a48a81dfc17",
        "guard_dialects",
    ),
    _target(
        "entrypoints.openai.protocol.ResponsesRequest.to_sampling_params",
        "499a345c9b8091fa0694c17a8760f265a5cb5a98d87a36a9176bb833a2fc77dd",
        "guard_dialects",
    ),
    _target(
        "entrypoints.anthropic.protocol.AnthropicMessagesRequest",
        "cb51f6ad1dc40030759aeb338e06ceabdd6f58ddf96ec0a4240af850b2021922",
        "guard_dialects",
    ),
)
