// Words of what the live page cannot compute, and so does not show.

import { addWords } from "explorer/words.js";

addWords({
  "sym.context_before_gate": ["context vector before the gate", "게이트 이전의 컨텍스트 벡터"],
  "sym.gate_W": ["weights of the gate", "게이트의 가중치 행렬"],
  "sym.gate": ["how far the gate is open", "게이트가 열린 정도"],
  "sym.handed_context": ["context as the decoder hands it on", "디코더가 넘겨주는 컨텍스트 벡터"],
  "sym.alignment": ["probability that the token comes from each source token", "다음 토큰이 각 원문 토큰에서 나올 확률"],
  "sym.copy_gate_w": ["weights of the gate between writing and copying", "생성과 복사를 가르는 게이트의 가중치"],
  "sym.gate_sum": ["sum before the sigmoid", "시그모이드 이전의 합"],
  "sym.copy_gate": ["probability of writing, not copying", "복사하지 않고 생성할 확률"],
  "sym.copied": ["probability of copying each token", "각 토큰을 복사할 확률"],
  "sym.mixed": ["probability of each token, written or copied", "생성하거나 복사하는 토큰별 확률"],
  "sym.written": ["probability of writing each token", "각 토큰을 생성할 확률"],
});
