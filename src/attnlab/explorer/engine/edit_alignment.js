// The shortest edit of a reference into a hypothesis, as in attnlab/evaluation/edit_alignment.py.

/** For each token of the hypothesis, the position of the reference token at its place; null for an inserted one. */
export function placesInReference(hypothesis, reference) {
  const distances = editDistances(hypothesis, reference);
  const places = hypothesis.map(() => null);
  let [i, j] = [hypothesis.length, reference.length];
  while (i > 0 && j > 0) {
    const differs = hypothesis[i - 1] !== reference[j - 1] ? 1 : 0;
    if (distances[i][j] === distances[i - 1][j - 1] + differs) {
      [i, j] = [i - 1, j - 1];
      places[i] = j;
    } else if (distances[i][j] === distances[i - 1][j] + 1) {
      i -= 1; // inserted
    } else {
      j -= 1; // deleted
    }
  }
  return places;
}

/** Positions in the hypothesis of the tokens that differ from the reference at their place. */
export function wrongTokens(hypothesis, reference) {
  const places = placesInReference(hypothesis, reference);
  const positions = [...hypothesis.keys()];
  return positions.filter((i) => places[i] === null || hypothesis[i] !== reference[places[i]]);
}

/** Links [position, source position] of a reference, moved to a hypothesis. */
export const linksOfHypothesis = (links, places) => places.flatMap((place, position) =>
  links.filter(([target]) => target === place).map(([, source]) => [position, source]));

/** Cell (i, j): the edit distance of the first i tokens from the first j of the reference. */
function editDistances(hypothesis, reference) {
  const distances = [[...Array(reference.length + 1).keys()]];
  hypothesis.forEach((token, i) => {
    const row = [i + 1];
    reference.forEach((expected, j) => {
      const substituted = distances[i][j] + (token === expected ? 0 : 1);
      row.push(Math.min(substituted, distances[i][j + 1] + 1, row[j] + 1));
    });
    distances.push(row);
  });
  return distances;
}
