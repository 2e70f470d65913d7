/**
 * The answers to statements that were sent together. Where one fails, those behind it fail because of it: the first failure is the one
 * that counts, and it is told when all are answered.
 */
export async function pipelined<Answers extends readonly unknown[]>(
  sent: {
    readonly [At in keyof Answers]: Promise<Answers[At]>
  },
): Promise<Answers> {
  const settled = await Promise.allSettled(sent)
  return settled.map((answer) => {
    if (answer.status === 'rejected') throw answer.reason
    return answer.value
  }) as unknown as Answers
}
