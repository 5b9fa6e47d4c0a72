import torch


def keras_attention(values, query, mask, W1, b1, W2, b2, V, b_v):
    query_with_time_axis = torch.unsqueeze(query, 1)
    score = (
        torch.tanh(
            torch.matmul(values, W1) + b1 + torch.matmul(query_with_time_axis, W2) + b2
        ).matmul(V.unsqueeze(1))
        + b_v
    )
    score = score.masked_fill(~mask.unsqueeze(-1), -1e9)
    attention_weights = torch.softmax(score, dim=1)
    context_vector = (attention_weights * values).sum(dim=1)
    return context_vector, attention_weights.squeeze(-1)


def probability(context, W3, b3, w4, b4):
    hidden = torch.nn.functional.relu(context @ W3 + b3)
    return torch.sigmoid(hidden @ w4[:, None] + b4).squeeze(1)
