// Every word of the interface, in English and Korean.

const WORDS = {
  title: ["attention explorer", "어텐션 탐색기"],
  model: ["Model", "모델"],
  source: ["Source", "원문"],
  translation: ["Translation", "번역"],
  sentence: ["Sentence and translation", "문장과 번역"],
  placeholder: ["Type a sentence of the language that the model reads", "모델이 읽는 언어로 문장을 입력하세요"],
  language: ["한국어", "English"],
  theme: ["Light or dark", "밝게 또는 어둡게"],
  views: ["Views", "보기"],
  "view.translate": ["Heat map", "히트맵"],
  logProb: ["log-probability", "로그 확률"],
  score: ["score", "점수"],
  step: ["Step {0}", "시점 {0}"],
  likeliest: ["Likeliest tokens", "가능성이 높은 토큰"],
  heatMap: ["heat map", "히트맵"],
  mapLabel: ["Attention from {0} target tokens to {1} source tokens. Arrow keys move from cell to cell.",
    "번역문 토큰 {0}개에서 원문 토큰 {1}개로의 어텐션. 화살표 키로 셀을 이동합니다."],
  mapHint: ["Point at a cell, or move with the arrow keys", "셀을 가리키거나 화살표 키로 이동하세요"],
  drawnAs: ["How attention is drawn", "어텐션을 그리는 방법"],
  cells: ["cells", "셀"],
  lines: ["lines", "선"],
  linesLabel: ["Lines between {0} target tokens and {1} source tokens, as wide as their weights",
    "번역문 토큰 {0}개와 원문 토큰 {1}개를 잇는 선. 굵기는 가중치입니다."],
  linesHint: ["Point at a token, or move with the arrow keys", "토큰을 가리키거나 화살표 키로 이동하세요"],
  scrollHint: ["⇆ {0} source tokens: scroll sideways", "⇆ 원문 토큰 {0}개: 옆으로 스크롤하세요"],
  relative: ["Colour each row by its own largest weight", "행마다 가장 큰 가중치를 기준으로 색칠"],
  largestOfRow: ["largest of the row", "행의 최댓값"],
  knownLink: ["known alignment of the reference token at this place", "이 자리의 참조 토큰에 대해 알려진 정렬"],
  possibleLink: ["possible alignment", "가능한 정렬"],
  token: ["token", "토큰"],
  wrongHint: ["differs from the reference token at its place, or has none there, in the shortest edit (insertions, deletions, substitutions) of the reference into the output",
    "참조를 출력으로 바꾸는 최소 편집(삽입, 삭제, 치환)에서 같은 자리의 참조 토큰과 다르거나 그 자리에 토큰이 없음"],
  table: ["As a table", "표로 보기"],
  target: ["Target", "번역문"],
  undo: ["Undo", "실행 취소"],
  tokenUnchanged: ["{0} token unchanged", "바뀌지 않은 토큰 {0}개"],
  tokensUnchanged: ["{0} tokens unchanged", "바뀌지 않은 토큰 {0}개"],
  showUnchanged: ["show", "보기"],
  hideUnchanged: ["hide", "숨기기"],
  serverGone: ["The explorer's server has stopped. Start it again in a terminal:", "탐색기 서버가 멈췄습니다. 터미널에서 다시 실행하세요."],
  serverGoneHint: ["This page goes on by itself as soon as the server is there.", "서버가 다시 켜지면 이 페이지가 저절로 이어집니다."],
  refused: ["{0}", "모델이 이 요청에 답하지 못했습니다: {0}"],
  noAttention: ["This model has no attention.", "이 모델에는 어텐션이 없습니다."],
  empty: ["Type a sentence of the language that the model reads, and its answer appears here.",
    "모델이 읽는 언어로 문장을 입력하면 여기에 모델의 답이 나타납니다."],
  "view.compare": ["Models", "모델 비교"],
  ownTranslation: ["own translation: {0}", "원래 번역: {0}"],
  branchTranslation: ["with your token: {0} (score {1})", "바꾼 토큰으로: {0} (점수 {1})"],
  panelHint: ["Choose another token, and the rest is translated anew.", "다른 토큰을 고르면 나머지를 새로 번역합니다."],
  otherToken: ["Another token", "다른 토큰"],
  translateAnew: ["Translate from here", "여기부터 번역"],
  back: ["Back to the model's own", "모델의 번역으로 돌아가기"],
  compareHint: ["Up to {0} models", "모델 최대 {0}개"],
  "view.weights": ["Weights", "가중치"],
  "view.source": ["Source tokens", "원문 토큰"],
  effects: ["Log-probability of each token of the model's own translation, in nats", "모델 자신의 번역에서 각 토큰의 로그 확률 (nat)"],
  before: ["before", "전"],
  after: ["after", "후"],
  change: ["change", "변화"],
  total: ["all", "합계"],
  newTranslation: ["Translation under the change", "변경 후 번역"],
  unchanged: ["(unchanged)", "(그대로)"],
  chooseStep: ["Step", "시점"],
  weightsHint: ["Choose a target token, then drag the weights of its step. They always sum to 1.",
    "번역문의 토큰을 고르고 그 시점의 가중치를 끌어 바꾸세요. 합은 항상 1입니다."],
  uniform: ["Uniform", "균등하게"],
  uniformHere: ["Uniform at this step", "이 시점만 균등하게"],
  attentionOfAllSteps: ["Attention of all steps", "모든 시점의 어텐션"],
  reset: ["Reset", "되돌리기"],
  changeSource: ["Change of the source", "원문 변경"],
  hide: ["Hide", "숨기기"],
  drop: ["Drop", "빼기"],
  swap: ["Swap", "맞바꾸기"],
  hideHint: ["The encoder reads a hidden token, but the attention cannot see it.", "숨긴 토큰은 인코더가 읽지만 어텐션은 볼 수 없습니다."],
  dropHint: ["A dropped token is no longer part of the source.", "뺀 토큰은 원문에서 사라집니다."],
  swapHint: ["Choose two tokens: they change places.", "두 토큰을 고르면 자리를 바꿉니다."],
  "view.beam": ["Beam", "빔 서치"],
  beamSize: ["Beam size", "빔 크기"],
  alpha: ["Length penalty {0}", "길이 페널티 {0}"],
  hypotheses: ["Finished hypotheses in the order of their scores", "점수 순으로 본 완성된 가설"],
  length: ["length", "길이"],
  kept: ["kept", "유지"],
  pruned: ["pruned", "탈락"],
  finished: ["finished", "완성"],
  cut_off: ["cut off at the length limit", "길이 제한으로 중단"],
  treeHint: ["Point at a node, or move with the arrow keys", "노드를 가리키거나 화살표 키로 이동하세요"],
  treeLabel: ["Tree of {0} partial hypotheses", "부분 가설 {0}개의 트리"],
  "view.pads": ["Pads", "패딩"],
  padsBefore: ["Pads before", "앞쪽 패딩"],
  padsBehind: ["Pads behind", "뒤쪽 패딩"],
  padsHint: ["Pads are added to the source; the attention sees them only without its mask.",
    "원문에 패딩을 더합니다. 마스킹이 없을 때만 어텐션이 패딩을 봅니다."],
  masked: ["Masked", "마스킹 적용"],
  unmasked: ["Unmasked", "마스킹 없음"],
  onPads: ["{0} % of the weight falls on pads", "가중치의 {0} %가 패딩에 있습니다"],
  "view.reference": ["Reference", "참조 번역"],
  referenceText: ["Reference translation", "참조 번역"],
  referenceHint: ["The decoder is fed the reference, token by token; beside it, what it writes by itself.",
    "디코더에 참조 번역을 토큰 하나씩 넣습니다. 옆은 스스로 쓴 번역입니다."],
  pairs: ["Test pairs of the corpus", "말뭉치의 테스트 문장 쌍"],
  goldAgreement: ["Outlined: the gold alignment. {0} of {1} aligned tokens look most at a token that they are aligned to.",
    "테두리: 정답 정렬. 정렬된 토큰 {1}개 중 {0}개가 정렬된 원문 토큰을 가장 많이 봅니다."],
  fed: ["Reference fed: log-probability {0}", "참조 번역 입력: 로그 확률 {0}"],
  free: ["Free-running: log-probability {0}", "자유 생성: 로그 확률 {0}"],
  stepByStep: ["What the model would write after each token of the reference", "참조 번역의 각 토큰 뒤에 모델이 쓸 토큰"],
  referenceToken: ["reference", "참조"],
  likeliestToken: ["likeliest", "최고 확률 토큰"],
  "view.losses": ["Test set", "테스트 문장"],
  lossHint: ["The test sentences of the corpus under this model. Choose one to see its attention. The loss is the mean negative log-likelihood of a reference token, in nats.",
    "이 모델로 본 말뭉치의 테스트 문장입니다. 문장을 고르면 어텐션이 나타납니다. 손실은 참조 번역 토큰 하나의 평균 음의 로그 우도(nat)입니다."],
  lossOrder: ["Order", "순서"],
  worst: ["largest loss first", "손실이 큰 문장부터"],
  best: ["smallest loss first", "손실이 작은 문장부터"],
  lossCaption: ["{0} sentences", "문장 {0}개"],
  lossProgress: ["{0} of {1} sentences", "문장 {1}개 중 {0}개"],
  loss: ["loss", "손실"],
  exact: ["exact", "일치"],
  isExact: ["equals the reference", "참조 번역과 같음"],
  isNotExact: ["differs from the reference", "참조 번역과 다름"],
  reference: ["reference", "참조 번역"],
  moreSentences: ["More sentences", "문장 더 보기"],
  "view.numbers": ["One step", "한 시점"],
  previous: ["Previous step", "이전 시점"],
  next: ["Next step", "다음 시점"],
  head: ["Head {0}", "헤드 {0}"],
  query: ["query", "쿼리"],
  energy: ["energy", "어텐션 스코어"],
  mask: ["mask", "마스킹"],
  emphasis: ["Gaussian", "가우시안"],
  coverage: ["coverage κᵢ", "커버리지 κᵢ"],
  keys: ["key", "키"],
  values: ["value", "값"],
  context: ["context", "컨텍스트 벡터"],
  output: ["output", "출력"],
  "view.classify": ["Sentence", "문장"],
  attention: ["Attention", "어텐션"],
  ownWeights: ["the model's own weights", "모델의 가중치"],
  newWeights: ["the weights under the change", "변경 후 가중치"],
  permuted: ["Permuted", "섞기"],
  permuteAgain: ["Permute again", "다시 섞기"],
  temperature: ["Temperature {0}", "온도 {0}"],
  weightsByHand: ["Drag the weights; they always sum to 1.", "가중치를 끌어 바꾸세요. 합은 항상 1입니다."],
  maskPads: ["Mask the pads", "패딩에 마스킹 적용"],
  classifyHint: ["Click a token of this sentence to hide it from the attention.", "이 문장의 토큰을 누르면 어텐션에서 숨깁니다."],
  classes: ["Probability of each class", "클래스별 확률"],
  class: ["class", "클래스"],
  copyLink: ["Copy link", "링크 복사"],
  copied: ["Copied", "복사했습니다"],
  saveHtml: ["Save page", "페이지 저장"],
  notSaved: ["This saved page has no answer to that; open the explorer with the model.", "저장된 페이지에는 이 답이 없습니다. 모델과 함께 탐색기를 여세요."],
  weight: ["weight", "가중치"],
  weights: ["Weights", "가중치"],
  probability: ["probability", "확률"],
};

let column = 0;

export function setLanguage(language) {
  column = language === "ko" ? 1 : 0;
  document.documentElement.lang = column ? "ko" : "en";
}

export const isKorean = () => column === 1;

/** A phrase of the interface, with {0}, {1} replaced. */
export function say(name, ...values) {
  const phrase = WORDS[name];
  if (!phrase) throw new Error(`words.js has no ${name}`);
  return phrase[column].replace(/\{(\d)\}/g, (_, i) => values[i]);
}

/** The name of a model's experiment, with its path where others share it; without one, its path and its score. */
export function modelName({ name, title, score }, models) {
  const path = shortName(name, models.map((each) => each.name));
  if (!title) return path + (score ? ` · ${score}` : "");
  return models.filter((each) => each.title === title).length > 1 ? `${title} (${path})` : title;
}

/** What tells a model's path from the others': "build/model" of one alone. */
function shortName(name, names) {
  const parts = names.map((each) => each.split("/").filter(Boolean));
  const mine = name.split("/").filter(Boolean);
  if (parts.length < 2) return mine.slice(-2).join("/");
  const same = (i) => parts.every((each) => each.at(i) === mine.at(i));
  const shortest = Math.min(...parts.map((each) => each.length));
  let [first, last] = [0, 0];
  while (first < shortest - 1 && same(first)) first += 1;
  while (first + last < shortest - 1 && same(-1 - last)) last += 1;
  return mine.slice(first, mine.length - last).join("/");
}
