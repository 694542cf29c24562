"""The checkpoints that other libraries wrote, with what those libraries made of them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = ["CASES", "DAMAGED", "ROOT", "Case"]

ROOT = Path(__file__).parents[1] / "golden" / "weights"
DAMAGED = ROOT / "damaged"


class Case(NamedTuple):
    """A weights file or folder, and the format as which it must be recognised."""

    name: str
    file: str
    format: str

    @property
    def folder(self) -> Path:
        return ROOT / self.name

    @property
    def path(self) -> Path:
        return self.folder / self.file

    @property
    def meta(self) -> dict[str, Any]:
        return json.loads((self.folder / "meta.json").read_text())

    @property
    def heads(self) -> int | None:
        """Only where the file does not say: then it must be asked for."""
        silent = {"torchvision", "DINOv2", "OpenAI CLIP", "vit-pytorch"}
        bare = self.format in silent or self.file.endswith(".pth")
        return self.meta["arch"]["heads"] if bare else None

    def outputs(self) -> dict[str, Tensor]:
        with np.load(self.folder / "io.npz") as file:
            return {name: torch.from_numpy(file[name]) for name in file.files}


CASES = (
    Case("timm_vit_cls", "", "timm"),
    Case("timm_deit_distilled", "", "timm"),
    Case("hf_vit_classifier", "model.safetensors", "Hugging Face ViT"),
    Case("hf_vit_classifier", "state_dict_in_memory.pth", "Hugging Face ViT"),
    Case("hf_dinov2", "", "Hugging Face ViT"),
    Case("hf_dinov2_registers", "", "Hugging Face ViT"),
    Case("hf_dinov2_classifier_swiglu", "", "Hugging Face ViT"),
    Case("torchvision_vit", "vit_torchvision.pth", "torchvision"),
    Case("dinov2_orig", "dinov2_vit_pretrain.pth", "DINOv2"),
    Case("openai_clip_visual", "clip_visual.pth", "OpenAI CLIP"),
    Case("hf_siglip_vision", "", "Hugging Face SigLIP"),
    Case("hf_siglip_vision", "as_written_by_transformers_4", "Hugging Face SigLIP"),
    Case("vit_jax_npz", "vit_jax.npz", "Google npz"),
    Case("vit_pytorch", "vit.pt", "vit-pytorch"),
    Case("wrapped_pth", "checkpoint.pth", "timm"),
    Case("hf_deit_distilled", "", "Hugging Face ViT"),
    Case("hf_vit_pooler", "", "Hugging Face ViT"),
    Case("hf_mae", "", "Hugging Face ViT"),
    Case("hf_dinov3", "", "Hugging Face DINOv3"),
    Case("hf_dinov3_gated", "", "Hugging Face DINOv3"),
    Case("hf_clip_whole", "", "Hugging Face CLIP"),
    Case("hf_siglip_whole", "", "Hugging Face SigLIP"),
    Case("timm_reg4_gap", "", "timm"),
    Case("timm_reg_cls", "", "timm"),
    Case("timm_siglip_map", "", "timm"),
    Case("timm_deit3", "", "timm"),
    Case("timm_clip_quickgelu", "", "timm"),
    Case("timm_dinov2_reg4", "", "timm"),
    Case("timm_dinov3", "", "DINOv3"),
    Case("timm_dinov3_gated", "", "DINOv3"),
)
