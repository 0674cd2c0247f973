"""The public implementations themselves: quiet, and without the network."""

import subprocess
import sys

PROGRAM = """
import os, socket

def asked(*arguments):
    os.write(2, b"somebody asked the network")
    os._exit(1)

socket.socket.connect = socket.getaddrinfo = asked
import torch, rotary_embedding_torch, x_transformers.x_transformers
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaForCausalLM

model = LlamaForCausalLM(LlamaConfig(
    vocab_size=9, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2))
two = {"min_new_tokens": 2, "max_new_tokens": 2}  # whichever they are, its end token included
assert model.generate(torch.arange(9)[None], do_sample=False, **two).shape == (1, 11)
"""


def test_they_print_nothing_and_ask_nobody():
    """With HF_HUB_OFFLINE, which conftest.py sets."""
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
