// Questions to the server. Answers are remembered; a saved page brings its answers along and asks nobody.

const saved = document.getElementById("saved-answers");
const answers = new Map(saved ? JSON.parse(saved.textContent) : []);
const MOST = 400;

export const NOT_SAVED = "not saved";
export const isSaved = saved !== null;
export const savedState = saved ? saved.dataset.state : "";
let used = null; // what is asked while answers are recorded

/** The answer to ["translate", {model, text, ...}]; throws an Error with the server's sentence. */
export async function ask([path, body]) {
  const key = JSON.stringify([path, body]);
  used?.add(key);
  if (answers.has(key)) return answers.get(key);
  if (isSaved) throw new Error(NOT_SAVED);
  const response = await fetch(`api/${path}`, body === null ? {} : {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  if (answers.size >= MOST) answers.delete([...answers.keys()][1]); // the first one lists the models
  answers.set(key, answer);
  return answer;
}

/** The questions that some work asks, with their answers. */
export async function recorded(work) {
  used = new Set([JSON.stringify(["models", null])]);
  await work();
  const pairs = [...used].filter((key) => answers.has(key)).map((key) => [key, answers.get(key)]);
  used = null;
  return pairs;
}
