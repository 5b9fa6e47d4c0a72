# says: has no function attention(query, keys, values, mask)
import numpy as np

del attention
