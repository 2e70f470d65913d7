/**
 * The complete exchange against a model. Traders place, cancel, arm switches and revoke keys at random over HTTP, prices trigger
 * conditional orders, crashes of the price liquidate positions, and processes are killed between two writes. After each round the journal and everything that REST returns is
 * compared with the model. A failure prints its seed and number of rounds: `MODEL_SEED=… MODEL_ROUNDS=… npx mocha test/e2e/model.test.ts`
 * repeats it, and `npm run model:deep -- --shrink seed rounds` searches for a shorter run that fails.
 */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { endingOf, type Round, roundsOf } from './support/commands.ts'
import { ExchangeRun } from './support/exchange-run.ts'
import { RACED } from './support/placement-prediction.ts'
import { type SecondInstance, startSecondInstance } from './support/second-instance.ts'
import { useStack } from './support/stack.ts'

const SEED = Number(process.env.MODEL_SEED ?? 52)
const ROUNDS = Number(process.env.MODEL_ROUNDS ?? 4)
/** A file with the rounds to play instead of those of a seed; `test/model/shrink-run.ts` writes it. */
const SCRIPT = process.env.MODEL_SCRIPT
const ROUND_LIMIT_MS = 240_000
const START_LIMIT_MS = 180_000
/** Counted over both histories: on a slow machine most orders of one may expire before they are sent. */
const ORDER_EVENTS = ['place', 'FILLED', 'triggered', 'USER_CANCELLED', 'EXPIRED'] as const
const happened = new Map<string, number>()
/** Of both histories. A fault can void the position that a crash would liquidate, or end the keeper until the price is back. */
let liquidations = 0

/** The recorder separates commands by their transactions: the engine stores each one by itself. */
process.env.GROUP_COMMANDS = '1'

for (const processes of [1, 2]) {
  const exchangeName = processes === 1 ? 'the exchange' : 'the exchange with two of each process'
  const seed = SEED + processes - 1

  describe(`${exchangeName}, against a model`, function () {
    this.timeout(START_LIMIT_MS)
    let run: ExchangeRun
    let second: SecondInstance | undefined
    // Registered before the hook that stops the stack: hooks run in the order of registration.
    after(async () => {
      for (const kind of ORDER_EVENTS)
        happened.set(kind, (happened.get(kind) ?? 0) + (run?.counts[kind] ?? 0))
      await run?.close()
      await second?.stop()
      if (process.env.MODEL_VERBOSE) console.log(run?.counts)
    })
    const exchange = useStack({ backstop: processes > 1 })
    before(async () => {
      const { stack } = exchange
      if (processes > 1) second = await startSecondInstance(stack)
      run = await ExchangeRun.start(stack, [
        stack.file.base_url,
        ...(second === undefined ? [] : [second.baseUrl]),
      ])
    })

    it(`when ${ROUNDS} rounds of seed ${seed} are played, it equals the model after each`, async function () {
      this.timeout(ROUNDS * ROUND_LIMIT_MS)
      const rounds: readonly Round[] =
        SCRIPT === undefined ? roundsOf(seed, ROUNDS) : JSON.parse(readFileSync(SCRIPT, 'utf8'))
      for (const [at, round] of rounds.entries()) {
        const problems = await run.playRound(round)
        const replay = `MODEL_SEED=${SEED} MODEL_ROUNDS=${at + 1}`
        expect(
          problems,
          `${replay}\n${problems.join('\n')}\nlast round: ${JSON.stringify(round)}`,
        ).to.deep.equal([])
      }
    })

    it('when the rounds are over, chain, journal, write side, read model and REST agree to the last wei', async () => {
      expect(await exchange.differences()).to.deep.equal([])
    })

    if (processes === 2)
      it('when the rounds of both histories are over, orders were placed, filled, triggered, cancelled and expired', () => {
        for (const kind of ORDER_EVENTS)
          expect((happened.get(kind) ?? 0) + (run.counts[kind] ?? 0), kind).to.be.greaterThan(0)
      })

    it('when the rounds are over, prices have crashed', () => {
      const { crashes = 0, 'liquidation started': started = 0 } = run.counts
      liquidations += started
      expect(crashes, JSON.stringify(run.counts)).to.be.greaterThan(0)
    })

    const ending = endingOf(seed)

    it(`when market ${ending.market} is finalized under faults, it ends once, and its accounts are paid out by the rules`, async function () {
      this.timeout(ROUND_LIMIT_MS * 3)
      const replay = `MODEL_SEED=${SEED} MODEL_ROUNDS=${ROUNDS}`
      expect(await run.endMarket(ending), `${replay}\n${JSON.stringify(ending)}`).to.deep.equal([])
      expect(await exchange.differences()).to.deep.equal([])
    })

    it('when placements are predicted, fewer than one in ten plus two have several valid responses', () => {
      const { predicted = 0, [RACED]: raced = 0 } = run.counts
      expect(raced, JSON.stringify(run.counts)).to.be.lessThan(2 + predicted / 10)
    })
  })
}

describe('the crashes of both histories', () => {
  it('when both are over, positions were liquidated', () => {
    expect(liquidations).to.be.greaterThan(0)
  })
})
