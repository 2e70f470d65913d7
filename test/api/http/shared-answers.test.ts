import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import {
  createSharedAnswers,
  DEMAND,
  FRESH_MS,
  type SharedAnswers,
  WINDOW_MS,
} from '../../../api/http/shared-answers.ts'

describe('shared answers', () => {
  let now: number
  let computed: number
  let answers: SharedAnswers<string>
  const reply = { serialize: (value: unknown) => JSON.stringify(value), type: () => reply } as never

  beforeEach(() => {
    now = 0
    computed = 0
    answers = createSharedAnswers(() => now)
  })

  const ask = (url = '/a', query = {}) =>
    answers.share({ url, query }, reply, async () => ({ number: ++computed }))
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
    const failing = answers.share({ url: '/a', query: {} }, reply, async () => {
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

  it('when an answer in demand has a form, it is found up to its age and not once the demand is over', async () => {
    answers.keepForm('/a', () => 'early')
    await askTimes(20, 1)
    expect(answers.find('/a', now)).to.equal(undefined)
    answers.keepForm('/a', () => 'form')
    const found = answers.find('/a', now)
    expect(found?.form).to.equal('form')
    expect(JSON.parse((await found?.answer)?.text ?? '')).to.deep.equal({ number: computed })
    expect(answers.find('/a?b', now)).to.equal(undefined)
    now += FRESH_MS + 1
    expect(answers.find('/a', now)).to.equal(undefined)
    await ask()
    expect(answers.find('/a', now)?.form).to.equal('form')
    now += 2 * WINDOW_MS
    expect(answers.find('/a', now)).to.equal(undefined)
  })

  it('when the next answer is being computed, a request finds that one', async () => {
    await askTimes(20, 1)
    answers.keepForm('/a', () => 'form')
    now += FRESH_MS + 1
    const asked = ask()
    const found = answers.find('/a', now)
    expect((await found?.answer)?.text).to.equal((await asked) as unknown as string)
  })

  for (const [kind, word] of [
    ['short', 'x'],
    ['long', 'x'.repeat(10_000)],
    ['of characters beyond Latin-1', '€'],
    ['of characters of Latin-1 beyond ASCII', 'é'],
  ]) {
    it(`when an answer is ${kind}, the bytes that are written are those of its text`, async () => {
      for (let times = 0; times <= DEMAND; times++)
        await answers.share({ url: '/a', query: {} }, reply, async () => ({ word }))
      answers.keepForm('/a', () => 'form')
      const { text, body, bytes } = (await answers.find('/a', now)?.answer) ?? expect.fail('not in demand')
      // A string is written as Latin-1.
      const written = typeof body === 'string' ? Buffer.from(body, 'latin1') : body
      expect([text, written.toString(), written.length]).to.deep.equal([`{"word":"${word}"}`, text, bytes])
    })
  }

  it('when answers in demand exceed the bound of kept bytes, all are forgotten', async () => {
    const large = 'x'.repeat(5 * 1024 * 1024)
    for (let page = 0; page < 8; page++) {
      for (let times = 0; times <= DEMAND; times++)
        await answers.share({ url: `/${page}`, query: {} }, reply, async () => ({ large }))
      answers.keepForm(`/${page}`, () => 'form')
    }
    const kept = Array.from({ length: 8 }, (_, page) => answers.find(`/${page}`, now) !== undefined)
    expect(kept).to.deep.equal([false, false, false, false, false, false, false, true])
  })
})
