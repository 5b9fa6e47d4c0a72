import torch
from torch.nn.functional import linear


def dot_scores(state, encoder_states):
    return torch.bmm(state.unsqueeze(1), encoder_states.transpose(1, 2)).squeeze(1)


def luong_step(states, t, encoder_states, mask, W_c, b_c, W_y, b_y):
    s_t = states[:, t, :]
    e_t = dot_scores(s_t, encoder_states)
    alpha_t = torch.softmax(e_t.masked_fill(mask == 0, -1e9), dim=1)
    a_t = torch.bmm(alpha_t.unsqueeze(1), encoder_states).squeeze(1)
    v_t = torch.cat((a_t, s_t), dim=1)
    s_tilde = torch.tanh(linear(v_t, W_c, b_c))
    return linear(s_tilde, W_y, b_y).softmax(1)
