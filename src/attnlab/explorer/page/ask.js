// Every question of the page goes through here: a name and its arguments as JSON, and a JSON answer.
// Answers are remembered; a saved page brings its answers along and asks nobody.

const saved = document.getElementById("saved-answers");
const answers = new Map(saved ? JSON.parse(saved.textContent) : []);
const MOST = 400;
const START = [["models", null], ["about", null]]; // what every page asks first

export const isSaved = saved !== null;
export const isExported = document.getElementById("exported-models") !== null; // with its models, which an engine asks
export const savedState = saved ? saved.dataset.state : "";

/** The server cannot be reached. */
export class ServerGone extends Error {}
/** A saved page lacks the answer. */
export class NotSaved extends Error {}

let backend = isSaved ? askNobody : askServer;
let used = null; // what is asked while answers are recorded

/** Let another function answer: it takes a name and arguments, and throws an Error whose message is a sentence. */
export function answerWith(other) {
  backend = other;
  forgetAnswers();
}

export const forgetAnswers = () => answers.clear();

/** The answer to ["translate", {model, text, ...}]; throws an Error with the backend's sentence. */
export async function ask([name, body]) {
  const key = keyOf([name, body]);
  used?.add(key);
  if (answers.has(key)) return answers.get(key);
  const answer = await backend(name, body);
  remember(key, answer);
  return answer;
}

/** The same for an answer that changes with time. */
export const askAnew = ([name, body]) => backend(name, body);

/** Whether a page is being saved, so that all is asked that it may show. */
export const isRecording = () => used !== null;

/** The questions that some work asks, with their answers. */
export async function recorded(work) {
  used = new Set(START.map(keyOf));
  await work();
  const pairs = [...used].filter((key) => answers.has(key)).map((key) => [key, answers.get(key)]);
  used = null;
  return pairs;
}

const keyOf = (question) => JSON.stringify(question);

function remember(key, answer) {
  const first = START.map(keyOf);
  if (answers.size >= MOST) answers.delete([...answers.keys()].find((each) => !first.includes(each)));
  answers.set(key, answer);
}

async function askServer(name, body) {
  const request = body === null ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(`api/${name}`, request);
  } catch {
    throw new ServerGone();
  }
  const answer = await response.json().catch(() => ({ error: `the server failed (${response.status})` }));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

async function askNobody() {
  throw new NotSaved();
}
