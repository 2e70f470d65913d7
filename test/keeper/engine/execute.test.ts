import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { AppliedRows } from '../../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import type { ExchangeCommand } from '../../../keeper/engine/commands.ts'
import { Exchange, type ExchangeParts } from '../../../keeper/engine/exchange.ts'
import type { Inputs } from '../../../keeper/engine/machine.ts'
import { genesis } from '../../../simulate/exchange/trading/genesis.ts'
import { TRADING_PARTS } from '../../../simulate/exchange/trading/scenario.ts'
import { type Random, randomOf } from '../../../simulate/random.ts'
import { BusyExchange } from './support/busy-exchange.ts'

const SEED = 20_260_611
const TICKS = 120

/** Compares each execution with the decision alone, and with a follower that applies its rows. */
class ComparedExchange extends Exchange {
  readonly follower = genesis()
  readonly #random: Random
  executed = 0
  takenBack = 0

  constructor(applied: AppliedRows, parts: ExchangeParts, random: Random) {
    super(applied, parts)
    this.#random = random
  }

  override execute(command: ExchangeCommand, inputs: Inputs): ReturnType<Exchange['execute']> {
    const before = { digest: this.digest(), position: this.position(), time: this.time() }
    const decided = this.decide(command, inputs)
    expect(this.digest(), 'a decision changes nothing').to.equal(before.digest)
    if (this.#random.chance(0.2)) this.#takeBack(command, inputs, before)
    const executed = super.execute(command, inputs)
    expect(executed).to.deep.equal(decided)
    for (const row of JSON.parse(JSON.stringify(executed.rows)) as Entry[]) this.follower.apply(row)
    expect(this.digest(), command.kind).to.equal(this.follower.digest())
    expect(this.position()).to.equal(this.follower.position())
    expect(this.time()).to.equal(this.follower.time())
    if (this.#random.chance(0.3)) this.forget(this.position())
    this.executed += executed.rows.length
    return executed
  }

  /** Executes the command and rolls it back, to its begin or in the middle of its rows. */
  #takeBack(command: ExchangeCommand, inputs: Inputs, before: { digest: string; position: number }): void {
    const { rows } = super.execute(command, inputs)
    const kept = this.#random.between(0, rows.length)
    this.undoTo(before.position + kept)
    for (const row of rows.slice(kept)) this.apply(row)
    this.undoTo(before.position)
    expect(this.digest(), 'a rollback leaves nothing').to.equal(before.digest)
    this.takenBack += rows.length
  }
}

describe('execution of commands', () => {
  it('when a command is executed, state, rows, answer and time are those of its decision and its rows, also after a rollback', async () => {
    const random = randomOf(SEED)
    const exchange = new ComparedExchange(genesis(), TRADING_PARTS, random)
    const busy = new BusyExchange(exchange, random)
    for (let tick = 1; tick <= TICKS; tick++) await busy.tick()
    expect(exchange.executed).to.be.greaterThan(1_000)
    expect(exchange.takenBack).to.be.greaterThan(100)
  }).timeout(60_000)
})
