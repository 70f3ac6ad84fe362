"""The compiled core: arrays and numbers only. It trusts its input; `busenv.Game` checks."""
