"""Libraries that choose a device: the code in docs/features/integrations.md selects this one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from backend import DEVICE
from ecosystem.tiny import tokenizer
from support import run_python

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "eos_token": "[SEP]",
}
WORDS = ["[MASK]", "a", "b", "good"]
SIZES: dict[str, Any] = {
    "vocab_size": 8,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}


def words(path: Path) -> None:
    """Write a tokenizer with a vocabulary of a few words."""
    tokenizer(WORDS, **SPECIAL).save_pretrained(path)


@pytest.mark.ecosystem("transformers")
def test_transformers_pipeline_runs_on_the_given_device(tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification, pipeline

    words(tmp_path)
    BertForSequenceClassification(BertConfig(**SIZES)).save_pretrained(tmp_path)
    options: Any = {"task": "text-classification", "model": str(tmp_path)}
    assert pipeline(**options).device.type == "cpu"
    there = pipeline(**options, device=DEVICE)
    assert there.device.type == there.model.device.type == DEVICE
    assert 0 <= there("good a")[0]["score"] <= 1


@pytest.mark.ecosystem("transformers", "sentence_transformers")
def test_sentence_transformers_run_on_the_given_device(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel

    words(tmp_path)
    BertModel(BertConfig(**SIZES)).save_pretrained(tmp_path)
    parts = [models.Transformer(str(tmp_path)), models.Pooling(16)]
    plain = SentenceTransformer(modules=parts)
    assert plain.device.type == "cpu"
    wanted = plain.encode(["good a", "b"])
    there = SentenceTransformer(modules=parts, device=DEVICE)
    assert there.device.type == DEVICE
    torch.testing.assert_close(
        torch.as_tensor(there.encode(["good a", "b"])), torch.as_tensor(wanted), rtol=0, atol=1e-4
    )


@pytest.mark.ecosystem("transformers", "accelerate", "lm_eval.models.huggingface")
def test_lm_eval_runs_on_the_device_of_the_model(tmp_path: Path) -> None:
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from transformers import LlamaConfig, LlamaForCausalLM

    words(tmp_path)
    model = LlamaForCausalLM(LlamaConfig(**SIZES))
    model.save_pretrained(tmp_path)
    told = HFLM(pretrained=str(tmp_path), device=DEVICE, batch_size=1)
    assert told.device.type == told.model.device.type == "cpu"
    there = HFLM(pretrained=model.to(DEVICE), tokenizer=str(tmp_path), batch_size=1)
    assert there.device.type == there.model.device.type == DEVICE
    values = [
        each.loglikelihood([Instance("loglikelihood", {}, ("a b", " good"), 0)])[0][0]
        for each in (told, there)
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-3)


@pytest.mark.ecosystem("torchvision", "ultralytics")
def test_ultralytics_predicts_on_the_given_device() -> None:
    from ultralytics import YOLO

    model = YOLO("yolov8n.yaml")
    image = torch.rand(1, 3, 64, 64)
    model.predict(image, device=DEVICE, verbose=False)
    assert model.predictor.device.type == DEVICE


@pytest.mark.ecosystem("ignite.engine")
def test_ignite_trains_on_the_given_device() -> None:
    """Ignite trains on the given device. Its ``amp_mode`` works only with CUDA."""
    from ignite import distributed
    from ignite.engine import create_supervised_trainer

    assert distributed.device().type == "cpu"
    model = torch.nn.Linear(4, 1).to(DEVICE)
    seen = []
    model.register_forward_hook(lambda module, inputs, out: seen.append((out.device, out.dtype)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = torch.nn.functional.mse_loss
    for mode in (None, "amp"):
        trainer = create_supervised_trainer(model, optimizer, loss, device=DEVICE, amp_mode=mode)
        trainer.run([(torch.ones(2, 4), torch.ones(2, 1))], max_epochs=1)
    assert {device.type for device, _ in seen} == {DEVICE}
    assert {dtype for _, dtype in seen} == {torch.float32}


@pytest.mark.ecosystem("torchinfo")
def test_torchinfo_moves_the_model_to_the_given_device() -> None:
    import torchinfo

    model = torch.nn.Linear(4, 1).to(DEVICE)
    torchinfo.summary(model, input_size=(2, 4), device=DEVICE, verbose=0)
    assert model.weight.device.type == DEVICE
    torchinfo.summary(model, input_size=(2, 4), verbose=0)
    assert model.weight.device.type == "cpu"


@pytest.mark.ecosystem("bitsandbytes")
def test_bitsandbytes_loads_the_backend_by_autoload() -> None:
    """The process does not import the backend by name."""
    code = f"""
    import torch, bitsandbytes
    layer = torch.nn.Linear(64, 64).to("{DEVICE}")
    optimizer = bitsandbytes.optim.Adam8bit(layer.parameters())
    layer(torch.ones(1, 64, device="{DEVICE}")).sum().backward()
    optimizer.step()
    print(torch.{DEVICE}.fallback_stats())
    """
    assert run_python(code).stdout.split()[-1] == "{}"
