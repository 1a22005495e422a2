"""The RoCE network: inventory, cabling, NCCL profile, ring plan, proof."""
