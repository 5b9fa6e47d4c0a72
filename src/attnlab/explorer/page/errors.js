// Why there is no answer, as a sentence in the page's language. The server's sentences are English; those that a person
// can meet on the page are listed here, and tests/explorer/test_explorer_errors.py makes the server say each of them.

import { NotSaved } from "explorer/ask.js";
import { isKorean, say } from "explorer/words.js";

const KOREAN = [
  [/^(?:force: |target: )?['"](.*)['"] is no token that the model can write; it has (\d+),/, "{1}: 모델이 쓸 수 있는 토큰이 아닙니다. 모델의 토큰은 모두 {2}개입니다."],
  [/^each text must be Unicode text, but character (\d+) of /, "유니코드 텍스트가 아닙니다. {1}번째 글자가 짝이 없는 서로게이트입니다."],
  [/^model must be one of .*; got (.*)$/s, "{1}: 이 탐색기에 없는 모델입니다. 목록에서 모델을 고르세요."],
  [/^intervene: hide must name positions below (\d+),/, "숨길 토큰의 위치는 {1}보다 작아야 합니다. 원문의 토큰은 {1}개입니다."],
  [/^intervene: weights of step (\d+) must be (\d+), one for each source token, got (\d+)/,
    "{1}번 시점의 가중치는 원문 토큰마다 하나씩 {2}개여야 하는데 {3}개가 왔습니다."],
  [/^intervene: patch must take positions below (\d+), the tokens of .*, got (\d+)$/s,
    "다른 문장의 토큰은 {1}개라서 {2}번 토큰이 없습니다. 위치는 0부터 셉니다."],
  [/^intervene: patch must name positions below (\d+),.* got (\d+)$/, "원문의 토큰은 {1}개라서 {2}번 토큰이 없습니다. 위치는 0부터 셉니다."],
  [/^intervene: patch "all" needs sentences of the same length, but the source has (\d+) tokens and .* has (\d+)$/s,
    "모든 토큰의 키나 값은 길이가 같은 문장에서만 가져올 수 있습니다. 원문의 토큰은 {1}개, 다른 문장의 토큰은 {2}개입니다."],
  [/^intervene: heads must be below (\d+),/, "헤드의 번호는 {1}보다 작아야 합니다. 0부터 셉니다."],
  [/^edit: swap and drop must name positions below (\d+)/, "맞바꾸거나 뺄 토큰의 위치는 {1}보다 작아야 합니다. 원문의 토큰은 {1}개입니다."],
  [/^model\.attention\.max_length is (\d+), but a source of (\d+) tokens/,
    "이 모델의 위치 기반 어텐션은 토큰 {1}개까지만 읽는데 원문의 토큰은 {2}개입니다(<eos> 포함). 더 짧은 문장을 입력하세요."],
  [/^the tree is that of a beam search whose size is at most (\d+)/, "트리는 빔 크기가 {1} 이하인 빔 서치에서만 그릴 수 있습니다."],
  [/^intervene changes the attention, but the model has none/, "이 모델에는 바꿀 어텐션이 없습니다."],
  [/^this analysis does not fit the kind of the model/, "이 모델의 종류에는 맞지 않는 분석입니다."],
  [/^recurrence: \w+ has no recurrence/, "이 인코더에는 패딩을 읽거나 건너뛰는 순환층이 없습니다."],
  [/^the test sentences cannot be computed/, "테스트 문장을 계산하다가 오류가 났습니다. 서버를 실행한 터미널을 확인하세요."],
  [/^there are no test sentences/, "테스트 문장이 없습니다. 탐색기를 --data와 함께 실행하세요."],
  [/^the server failed \((\d+)\)/, "서버에서 오류가 났습니다({1}). 서버를 실행한 터미널을 확인하세요."],
];

/** The sentence of an error. */
export function sentenceOf(error) {
  if (error instanceof NotSaved) return say("notSaved");
  if (!isKorean()) return error.message;
  for (const [pattern, korean] of KOREAN) {
    const found = pattern.exec(error.message);
    if (found) return korean.replace(/\{(\d)\}/g, (_, i) => found[i]);
  }
  return say("refused", error.message);
}
