/**
 * The whole exchange against a model: traders place, cancel, arm and revoke at random over HTTP, prices trigger what waits, processes are
 * killed where it hurts, and after each round everything that the exchange tells is compared with what the traders know. A failure prints
 * the seed and the rounds that lead to it: `MODEL_SEED=… MODEL_ROUNDS=… npx mocha test/e2e/model.test.ts` plays them again.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { useStack } from '../support/stack.ts'
import { roundsOf } from './support/commands.ts'
import { Play } from './support/play.ts'

const SEED = Number(process.env.MODEL_SEED ?? 4)
const ROUNDS = Number(process.env.MODEL_ROUNDS ?? 10)
const ROUND_LIMIT_MS = 240_000

describe('the whole exchange, against a model', function () {
  this.timeout(ROUND_LIMIT_MS)
  let play: Play
  // Before the stack's own: hooks run in their order.
  after(async () => {
    await play?.close()
    if (process.env.MODEL_VERBOSE) console.log(play?.counts)
  })
  const exchange = useStack()
  before(async () => {
    play = await Play.open(exchange.stack)
  })

  it(`is what the model says after each of ${ROUNDS} rounds of seed ${SEED}`, async function () {
    this.timeout(ROUNDS * ROUND_LIMIT_MS)
    for (const [at, round] of roundsOf(SEED, ROUNDS).entries()) {
      const wrong = await play.round(round)
      const replay = `MODEL_SEED=${SEED} MODEL_ROUNDS=${at + 1}`
      expect(wrong, `${replay}\n${wrong.join('\n')}\nlast round: ${JSON.stringify(round)}`).to.deep.equal([])
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
})
