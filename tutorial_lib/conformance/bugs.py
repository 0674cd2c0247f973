"""The bugs that have a name: what each one is, what to do about it, and where it has been met in public."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """``case`` is a public thread, ``owner/name#number``; "" where none is known to us."""

    says: str
    do: str
    case: str = ""


BUGS = {
    # ---- which channels turn together, and how ----
    "layout": Bug(
        "the channels are paired in the other layout (interleaved for half, or half for interleaved)",
        "pair channels as the weights were trained, or permute W_q and W_k once with permute_projection",
        "ggml-org/llama.cpp#3364",
    ),
    "mixed layouts": Bug(
        "the angles are laid out for one layout and the channels are paired in the other",
        "repeat the angles as you pair: cat([a, a]) with halves, repeat_interleave(2) with neighbours",
        "raiyanyahya/how-to-train-your-gpt#6",
    ),
    "permuted channels": Bug(
        "the output is right but stands in the channel order of the other layout",
        "put the turned channels back where they came from: cat for halves, stack and flatten for neighbours",
    ),
    "indexer's layout": Bug(
        "the indexer of sparse attention pairs its channels in a layout that is not that of its weights",
        "give each rotation the layout of its own weights: attention and indexer may differ",
        "vllm-project/vllm#28968",
    ),
    "sign": Bug(
        "everything turns the other way round",
        "(a, b) becomes (a·cos − b·sin, a·sin + b·cos); check the minus in rotate_half",
    ),
    "minus lost": Bug(
        "the minus of the rotation is missing, or there is one too many, so lengths change",
        "(a, b) becomes (a·cos − b·sin, a·sin + b·cos)",
    ),
    "cosine for sine": Bug(
        "sine and cosine have changed places, so that position 0 is turned by a right angle",
        "check the order in which cos and sin are returned and unpacked",
    ),
    "turned twice": Bug(
        "the rotation is applied twice",
        "turn in one place only: in the attention, or where keys enter the cache",
    ),
    "positions doubled": Bug(
        "every position counts double",
        "look for a second multiplication of the positions, or a position-interpolation factor of 1/2",
    ),
    "only queries turned": Bug(
        "queries are turned and keys are not",
        "turn both; with a cache, turn each key when it comes, at its own position",
    ),
    "only keys turned": Bug("keys are turned and queries are not", "turn both"),
    "queries against keys": Bug(
        "queries and keys turn in opposite directions, so a score depends on the sum of the positions",
        "use one and the same rotation for both",
    ),
    "values turned": Bug(
        "values are turned too and the output is not turned back",
        "turn queries and keys alone, or undo the query's rotation on the output",
    ),
    # ---- where a token stands ----
    "positions from 1": Bug(
        "positions are counted from 1",
        "the first token stands at 0; with learned or sinusoidal tables it matters even if scores agree",
    ),
    "positions lag by one": Bug(
        "each position is one too small",
        "the next token stands at the number of tokens before it, not at the last one's place",
    ),
    "positions restart": Bug(
        "the positions that are given are ignored: every call counts from 0 again",
        "pass the offset of the cache on, and use the positions that the caller gives",
        "lucidrains/rotary-embedding-torch#11",
    ),
    "stale angles": Bug(
        "angles are kept from an earlier call of the same length and taken again at other positions",
        "make the positions part of the cache's key",
        "lucidrains/rotary-embedding-torch#11",
    ),
    "one position for the chunk": Bug(
        "all tokens of a call get one position, that of its first or last token",
        "give each token of a chunk its own position",
    ),
    "packing": Bug(
        "the numbering runs on from document to document: positions that jump are not followed",
        "index the table by the positions, do not count from the first of them",
        "allenai/OLMo-core#591",
    ),
    "rows share positions": Bug(
        "all rows of a batch get the positions of the first row",
        "index the table with [B, L] positions, and give the result room for the heads",
    ),
    "along the heads": Bug(
        "the rotation counts heads, not tokens",
        "check the order of the axes: [batch, heads, length, channels] or [batch, length, heads, channels]",
        "mlfoundations/open_lm#4",
    ),
    "keys turned anew": Bug(
        "keys that stay in a cache when others leave it are turned a second time",
        "keep keys unturned and turn them by their place, or turn each one once",
        "mit-han-lab/streaming-llm#53",
    ),
    "keys not turned": Bug(
        "when keys leave the cache, those that stay keep the angle of a place that is not theirs any more",
        "turn them back by the places that they moved, or keep them unturned",
        "mit-han-lab/streaming-llm#53",
    ),
    "left padding counted": Bug(
        "the padding on the left is counted, so a padded text stands further right",
        "positions = attention_mask.cumsum(-1) - 1, clamped at 0",
        "huggingface/transformers#29583",
    ),
    "padding seen": Bug(
        "tokens look at the padding", "mask the padded keys in every layer", "huggingface/transformers#22161"
    ),
    "documents seen": Bug(
        "a document in a packed row sees the one before it", "mask by document: same row, same document"
    ),
    "future seen": Bug(
        "a token sees what comes after it", "mask keys beyond the query's own place: tril, not triu"
    ),
    "own token hidden": Bug("a token does not see itself", "use tril(), not tril(-1)"),
    "mask starts at the top": Bug(
        "with a cache the causal mask begins in the upper left corner, so a late query sees early keys only",
        "with Lq < Lk the triangle ends in the lower right: tril(Lk - Lq)",
        "pytorch/pytorch#103082",
    ),
    # ---- precision ----
    "angles in half precision": Bug(
        "angles or frequencies are computed in 16 bits and lose the position",
        "keep inv_freq and the angles in float32 whatever the model's dtype; round cos and sin at last",
        "huggingface/transformers#29285",
    ),
    "positions in bf16": Bug(
        "positions are rounded to 16 bits: bfloat16 holds no odd number above 256, float16 none above 2048",
        "keep positions as integers or float32 until the angle (or the bias) is made",
        "EleutherAI/gpt-neox#1003",
    ),
    # ---- which angles ----
    "inv_freq never filled": Bug(
        "the frequencies are zeros or garbage: the buffer was made on meta or empty, and never filled",
        "compute inv_freq anew after to_empty(), it is not in the checkpoint",
        "huggingface/transformers#45902",
    ),
    "base": Bug(
        "the base is not the one that the weights were trained with",
        "read rope_theta where this config keeps it (rope_parameters in Transformers 5) without a default",
        "deepspeedai/DeepSpeed#8345",
    ),
    "frequencies with d/2": Bug(
        "the exponent is divided by d/2 where d belongs (or its index is doubled twice)",
        "θ_t = base^(−2t/d) for t = 0 … d/2 − 1",
        "SamLynnEvans/Transformer#25",
    ),
    "frequencies with 2d": Bug(
        "the exponent has t where 2t belongs, so that half of the wavelengths are missing",
        "θ_t = base^(−2t/d) for t = 0 … d/2 − 1",
    ),
    "d − 1 for d": Bug(
        "the exponent ends at base exactly: it is divided by d/2 − 1 in place of d/2",
        "θ_t = base^(−2t/d); some old sinusoidal tables do divide by d/2 − 1: say so if yours must",
    ),
    "model's dimension": Bug(
        "the exponent is divided by another dimension (the model's, the head's) in place of the rotated one",
        "d is the number of channels that turn in one head",
    ),
    "frequencies reversed": Bug(
        "the slowest pair comes first", "θ falls with t: the first pair is the fastest"
    ),
    "partial part": Bug(
        "the wrong part of the head turns, too much or too little of it",
        "turn the first rotary_dim channels (or the last: as in training)",
    ),
    "whole head turned": Bug(
        "all channels turn where only rotary_dim should",
        "read partial_rotary_factor, turn that part, pass the rest through",
    ),
    "scaling missing": Bug(
        "the scaling for long texts is not applied",
        "apply rope_scaling / rope_parameters of the config",
        "Blaizzy/mlx-vlm#1709",
    ),
    "scaling unexpected": Bug(
        "the angles are scaled, and plain RoPE was declared",
        "drop the scaling in these layers, or declare it (scaling=…)",
        "ggml-org/llama.cpp#14367",
    ),
    "scaling in the wrong layers": Bug(
        "local and global layers have each other's angles",
        "Gemma 3 and others scale global layers only, and local ones have a base of their own",
        "ggml-org/llama.cpp#14367",
    ),
    "factor twice": Bug(
        "the scaling factor is applied twice", "scale either the positions or the frequencies"
    ),
    "factor inverted": Bug("positions are multiplied by the factor", "divide by it: θ/s, or p/s"),
    "attention factor forgotten": Bug(
        "cosines and sines are not multiplied by the attention factor",
        "multiply both by 0.1·ln(s) + 1 (or the attention_factor of the config)",
        "pytorch/torchtitan#4117",
    ),
    "attention factor squared": Bug(
        "the attention factor is applied twice to each side",
        "multiply cosines and sines, or the scores by its square, not both",
    ),
    "attention factor unexpected": Bug(
        "lengths change: cosines and sines carry a factor that nothing declared asks for",
        "drop the factor, or declare the scaling it belongs to",
    ),
    "ramp truncated": Bug(
        "YaRN's ramp begins and ends at whole indices, and the declared one does not (truncate: false)",
        "leave floor and ceil out, as gpt-oss does",
    ),
    "ramp not truncated": Bug(
        "YaRN's ramp begins and ends between indices, and the declared one is rounded",
        "use floor and ceil as the released code does",
    ),
    "ramp over wavelengths": Bug(
        "YaRN's ramp is linear in the number of turns as in the paper, not in the index as in released code",
        "use the released code's ramp for released weights",
    ),
    "axes swapped": Bug(
        "the axes of the positions (row and column, or time) are read in another order",
        "check meshgrid's indexing, and which part of the head reads which axis",
    ),
    "sections": Bug(
        "M-RoPE's sections are cut in another order, or interleaved for chunked",
        "mrope_section says how many pairs read time, height and width; Qwen3-VL interleaves them",
    ),
    "corners aligned": Bug(
        "a table of an image is resized with aligned corners, so that all places but the middle move",
        "align_corners=False, as the weights were trained with",
    ),
    # ---- biases ----
    "bias sign": Bug(
        "the bias rewards distance in place of punishing it",
        "−m·(i − j): the farther key gets the smaller score",
        "meta-pytorch/attention-gym#86",
    ),
    "table read i − j": Bug(
        "the bias is mirrored: entry i − j is read where j − i belongs",
        "r = key position − query position, everywhere",
    ),
    "bias signed in both directions": Bug(
        "keys ahead are rewarded: the one-sided bias is used without a causal mask",
        "use −m·|i − j| or slopes for each side in an encoder",
        "ofirpress/attention_with_linear_biases#5",
    ),
    "bias is a mirror": Bug(
        "left and right get the same bias, so a text and its reversal look alike",
        "some encoders were trained so; otherwise give left and right different slopes",
        "ofirpress/attention_with_linear_biases#5",
    ),
    "bias before the scale": Bug(
        "the bias is divided by √d together with the scores",
        "add it after the scores were scaled",
    ),
    "slopes": Bug(
        "the slopes are not those of the released code, which treats a number of heads that is not a power "
        "of two differently",
        "take those of the next lower power of two, then every second one of the next higher",
        "ml-explore/mlx#3071",
    ),
    "slopes from 1": Bug("the slopes begin at 1, one head too early", "m_h = 2^(−8h/n) for h = 1 … n"),
    "bias restarts": Bug(
        "with a cache the query counts from 0: bias(1, Lk) is the first row, not the last",
        "the queries are the last keys: i = Lk − Lq … Lk − 1",
    ),
    "buckets": Bug(
        "the buckets are one off, or begin or end elsewhere",
        "compare with tutorial_lib.encodings.t5.bucket; the exact ones are below n_buckets/2",
        "huggingface/candle#1312",
    ),
    "bucket overflow": Bug(
        "far keys run past the last bucket of their side",
        "clamp to the last bucket of the side",
        "huggingface/candle#1312",
    ),
    "bidirectional buckets": Bug(
        "buckets for both directions in a causal model: half of the table is never read",
        "bidirectional=False in a decoder",
    ),
    "causal buckets": Bug(
        "causal buckets in an encoder: all keys ahead share one entry", "bidirectional=True in an encoder"
    ),
    "clipped after the shift": Bug(
        "the index is clipped in the wrong order: one side is cut too early or wraps around",
        "clip r to −k … k first, then add k",
        "huggingface/transformers#9164",
    ),
    "scale missing": Bug("scores are not divided by √d", "multiply by d ** -0.5"),
    "scale twice": Bug("scores are divided by d", "scale once: the fused kernel already does it"),
    "no position": Bug(
        "nothing depends on the position: the encoding is not applied",
        "check that the encoding is called, and by every layer",
    ),
}
