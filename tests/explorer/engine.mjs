// The engine of exported pages in Node: of each line of stdin, {models, questions}, the answers as a line of JSON.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { Backend } = await import(pathToFileURL(process.argv[2]));

function answerOf(backend, [name, body]) {
  try {
    return backend.answer(name, body);
  } catch (error) {
    return { error: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { models, questions } = JSON.parse(line);
  const backend = new Backend(models);
  console.log(JSON.stringify(questions.map((question) => answerOf(backend, question))));
}
