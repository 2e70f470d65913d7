import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import {
  createSharedAnswers,
  DEMAND,
  FRESH_MS,
  type ShareAnswer,
  WINDOW_MS,
} from '../../../api/http/shared-answers.ts'

describe('shared answers', () => {
  let now: number
  let computed: number
  let share: ShareAnswer
  const reply = { serialize: (value: unknown) => JSON.stringify(value), type: () => reply } as never

  beforeEach(() => {
    now = 0
    computed = 0
    share = createSharedAnswers(() => now)
  })

  const ask = (url = '/a', query = {}) => share({ url, query }, reply, async () => ({ number: ++computed }))
  /** The number of the answer that each of so many requests, one after the other, gets. */
  const askTimes = async (times: number, everyMs: number): Promise<number[]> => {
    const numbers: number[] = []
    for (let count = 0; count < times; count++) {
      numbers.push(JSON.parse((await ask()) as unknown as string).number)
      now += everyMs
    }
    return numbers
  }

  it('when requests arrive while the answer is computed, they share it', async () => {
    const answers = await Promise.all([ask(), ask(), ask('/b')])
    expect(answers).to.deep.equal(['{"number":1}', '{"number":1}', '{"number":2}'])
  })

  it('when requests are rare, each gets an answer of its own', async () => {
    expect(await askTimes(20, WINDOW_MS / DEMAND)).to.deep.equal(
      Array.from({ length: 20 }, (_, at) => at + 1),
    )
  })

  it('when an answer is in demand, it serves requests up to its age, and not once the demand is over', async () => {
    const numbers = await askTimes(200, 1)
    expect(computed).to.be.at.most(DEMAND + 200 / FRESH_MS + 1)
    expect(numbers).to.deep.equal(numbers.toSorted((a, b) => a - b))
    now += 2 * WINDOW_MS
    const [last] = numbers.slice(-1) as [number]
    expect(await askTimes(2, 1)).to.deep.equal([last + 1, last + 2])
  })

  it('when computing fails, only the requests of the moment fail', async () => {
    await askTimes(20, 1)
    now += FRESH_MS + 1
    const failing = share({ url: '/a', query: {} }, reply, async () => {
      throw new Error('no database')
    })
    const error = await failing.catch((reason: Error) => reason.message)
    expect(error).to.equal('no database')
    const before = computed
    await ask()
    expect(computed).to.equal(before + 1)
  })

  it('when a read has a bookmark, it is computed for itself', async () => {
    await askTimes(20, 1)
    const before = computed
    await Promise.all([
      ask('/a?x', { read_after_shard_id: 'm1.1' }),
      ask('/a?x', { read_after_shard_id: 'm1.1' }),
    ])
    expect(computed).to.equal(before + 2)
  })
})
