/**
 * The whole exchange against a model: traders place, cancel, arm and revoke at random over HTTP, prices trigger what waits, processes are
 * killed where it hurts, and after each round everything that the exchange did and tells is compared with what the model says. A failure
 * prints the seed and the rounds that lead to it: `MODEL_SEED=… MODEL_ROUNDS=… npx mocha test/e2e/model.test.ts` plays them again, and
 * `npm run model:deep -- --shrink seed rounds` looks for less of them that fails.
 */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Round, roundsOf } from './support/commands.ts'
import { RACED } from './support/foresight.ts'
import { Play } from './support/play.ts'
import { type Seconds, startSeconds } from './support/second-instance.ts'
import { useStack } from './support/stack.ts'

const SEED = Number(process.env.MODEL_SEED ?? 4)
const ROUNDS = Number(process.env.MODEL_ROUNDS ?? 6)
/** Rounds written down, instead of those of a seed: see `model-shrink.ts`. */
const SCRIPT = process.env.MODEL_SCRIPT
const ROUND_LIMIT_MS = 240_000
const START_LIMIT_MS = 90_000

/** How many of each process there are. */
for (const processes of [1, 2]) {
  const what = processes === 1 ? 'the whole exchange' : 'the whole exchange, two of each process'
  const seed = SEED + processes - 1

  describe(`${what}, against a model`, function () {
    this.timeout(START_LIMIT_MS)
    let play: Play
    let seconds: Seconds | undefined
    // Before the stack's own: hooks run in their order.
    after(async () => {
      await play?.close()
      await seconds?.stop()
      if (process.env.MODEL_VERBOSE) console.log(play?.counts)
    })
    const exchange = useStack()
    before(async () => {
      const { stack } = exchange
      if (processes > 1) seconds = await startSeconds(stack)
      play = await Play.open(stack, [
        stack.file.base_url,
        ...(seconds === undefined ? [] : [seconds.baseUrl]),
      ])
    })

    it(`is what the model says after each of ${ROUNDS} rounds of seed ${seed}`, async function () {
      this.timeout(ROUNDS * ROUND_LIMIT_MS)
      const rounds: readonly Round[] =
        SCRIPT === undefined ? roundsOf(seed, ROUNDS) : JSON.parse(readFileSync(SCRIPT, 'utf8'))
      for (const [at, round] of rounds.entries()) {
        const wrong = await play.round(round)
        const replay = `MODEL_SEED=${SEED} MODEL_ROUNDS=${at + 1}`
        expect(wrong, `${replay}\n${wrong.join('\n')}\nlast round: ${JSON.stringify(round)}`).to.deep.equal(
          [],
        )
      }
    })

    it('agrees with the chain and with its own log on every balance and position, to the last wei', async () => {
      expect(await exchange.differences()).to.deep.equal([])
    })

    it('has been through everything that it is made for', () => {
      const { place = 0, FILLED = 0, triggered = 0, USER_CANCELLED = 0, EXPIRED = 0 } = play.counts
      expect(
        Math.min(place, FILLED, triggered, USER_CANCELLED, EXPIRED),
        JSON.stringify(play.counts),
      ).to.be.greaterThan(0)
    })

    it('has foreseen what placements are answered, hardly ever with a choice', () => {
      const { foreseen = 0, [RACED]: raced = 0 } = play.counts
      expect(raced, JSON.stringify(play.counts)).to.be.lessThan(2 + foreseen / 10)
    })
  })
}
