/** Fill state of orders: random sequences on `SaltLib` compared with a model that packs nothing. */
import { expect } from 'chai'
import { getAddress, toBeHex } from 'ethers'
import { SaltHarness__factory } from '../../typechain-types/factories/mocks/SaltHarness__factory.ts'
import type { SaltHarness } from '../../typechain-types/mocks/SaltHarness.ts'
import { refusalIn } from '../support/errors.ts'
import { chain, firstSigner } from '../support/exchange.ts'
import { randomOf } from '../support/random.ts'
import { ACTION_LIFETIME, CANCEL_GRACE, type FillStep, NO_SLOT, SaltModel } from './support/salt-model.ts'

const RUNS = 40
const STEPS = 160
const STARTED = 1_700_000_000_000n
const SALT_END = 1n << 53n
/** Maximum of quantity, fill and batch. */
const LARGEST = (1n << 48n) - 1n

/** They differ in the first or in the last bit. */
const MAKERS = [1n << 159n, 0n, 1n].map((bit) => getAddress(toBeHex((0xabcdefn << 64n) ^ bit, 20)))

// ---------------------------------------------------------------------- steps

/** A call of the harness, its expected answer, and the kind of that answer. */
interface Step {
  readonly call: string
  readonly answer: readonly unknown[] | string
  readonly kind: string
}

const rules = SaltHarness__factory.createInterface()

/** Few makers, salts (of two words and one far away) and slots, so that most possible interactions occur. */
class RandomSteps {
  readonly steps: Step[] = []
  readonly #model = new SaltModel()
  readonly #random: (end: number) => number
  readonly #salts: readonly bigint[]
  readonly #slotOf = new Map<string, bigint>()
  readonly #times: bigint[] = [STARTED]
  #batch: bigint

  constructor(seed: number) {
    this.#random = randomOf(seed)
    const word = this.#pick([0n, 1n << 46n, (SALT_END >> 6n) - 2n, BigInt(this.#random(1 << 30))]) * 64n
    this.#salts = [0n, 1n, 62n, 63n, 64n, 127n].map((place) => (word + place) % SALT_END)
    this.#salts = [...this.#salts, this.#salts[0]! ^ (1n << 52n)]
    this.#batch = this.#pick([1n, LARGEST - 1_000n])
    while (this.steps.length < STEPS) this.#step()
    for (const maker of MAKERS) for (const salt of this.#salts) this.#askState(maker, salt)
  }

  #pick<Choice>(choices: readonly Choice[]): Choice {
    return choices[this.#random(choices.length)]!
  }

  #add(name: string, args: readonly unknown[], kind: string, answer: Step['answer']): void {
    this.steps.push({ call: rules.encodeFunctionData(name as never, args as never), answer, kind })
  }

  /** The time of an earlier request, or the bounds of its effect. */
  #asOf(): bigint {
    return this.#pick(this.#times.slice(-4)) + this.#pick([0n, CANCEL_GRACE, CANCEL_GRACE + 1n])
  }

  /** Advances by seconds, or to the time at which an earlier request is no longer recorded separately. */
  #now(): bigint {
    const latest = this.#times.at(-1)!
    const ripe = this.#pick(this.#times.slice(-4)) + CANCEL_GRACE + ACTION_LIFETIME + this.#pick([0n, 1n])
    const now = this.#pick(
      [latest, latest + 1_000n, latest + CANCEL_GRACE, ripe].filter((time) => time >= latest),
    )
    this.#times.push(now)
    return now
  }

  #step(): void {
    const [maker, salt] = [this.#pick(MAKERS), this.#pick(this.#salts)]
    const taken = this.#random(20)
    if (taken < 11) this.#fill(maker, salt)
    else if (taken < 15) this.#cancel(maker)
    else if (taken < 16) this.#raise(maker)
    else if (taken < 18) this.#askEnd(maker, salt, this.#asOf())
    else this.#askSlot(maker, this.#pick([0n, 1n, 2n, 1022n]))
  }

  #fill(maker: string, salt: bigint): void {
    const known = this.#slotOf.get(`${maker}:${salt}`)
    const slot = known !== undefined && this.#random(4) > 0 ? known : this.#pick([0n, 1n, 2n, 1022n, NO_SLOT])
    const quantity = this.#pick([1n, 2n, 10n, 10n, LARGEST])
    const { filled } = this.#model.heldIn(maker, slot)
    const sizes = [1n, 1n, 2n, quantity, quantity - 1n, quantity - filled, quantity - filled + 1n]
    const fill = this.#pick(sizes.filter((size) => size > 0n && size <= LARGEST))
    if (this.#random(4) === 0) this.#batch++
    const price = this.#pick([0n, 500n])
    const step = { maker, salt, quantity, fill, price, slot, batchId: this.#batch, asOf: this.#asOf() }
    const { ok, ...outcome } = this.#model.fill(step)
    const isDead = 'value' in outcome && outcome.value
    if (ok && !isDead) this.#slotOf.set(`${maker}:${salt}`, slot)
    const answer = 'refusal' in outcome ? outcome.refusal : [isDead]
    const kind = typeof answer === 'string' ? answer.replace(/\(.*/, '') : isDead ? 'ends' : 'fills'
    this.#add('consume', wordsOf(step), kind, answer)
  }

  /** Up to three at once. */
  #cancel(maker: string): void {
    const now = this.#now()
    for (let left = 1 + this.#random(3); left > 0; left--) {
      const salt = this.#pick(this.#salts)
      this.#model.cancel(maker, salt, now)
      this.#add('requestCancel', [maker, salt, now], 'cancel', [])
    }
    this.#askState(maker, this.#pick(this.#salts))
  }

  /** Twice; the second request comes when the first is settled, or when its time restarts. */
  #raise(maker: string): void {
    const first = this.#now()
    this.#times.push(first + CANCEL_GRACE + ACTION_LIFETIME + this.#pick([0n, 1n]))
    const floors = [this.#pick(this.#salts), this.#pick(this.#salts)].sort((a, b) => (a < b ? -1 : 1))
    for (const [index, floor] of floors.entries()) {
      const at = [first, this.#times.at(-1)!][index]!
      const raised = this.#model.raiseFloor(maker, floor, at)
      this.#add('requestFloor', [maker, floor, at], raised ? 'raises' : 'stays', [raised])
      for (const salt of this.#salts) this.#askEnd(maker, salt, at)
    }
  }

  #askEnd(maker: string, salt: bigint, asOf: bigint): void {
    const end = this.#model.endOf({ maker, salt, asOf })
    this.#add('requireAlive', [maker, salt, asOf], end === null ? 'lives' : 'has ended', end ?? [])
  }

  #askState(maker: string, salt: bigint): void {
    const state = this.#model.stateOf(maker, salt)
    this.#add('stateOf', [maker, salt], `state ${state}`, [state])
  }

  #askSlot(maker: string, slot: bigint): void {
    const { salt, filled, batchId } = this.#model.heldIn(maker, slot)
    this.#add('readSlot', [maker, slot], filled > 0n ? 'used slot' : 'slot', [salt, filled, batchId])
  }
}

const wordsOf = ({ maker, salt, quantity, fill, price, slot, batchId, asOf }: FillStep): bigint[] => [
  (BigInt(maker) << 96n) | (quantity << 48n) | fill,
  (salt << 196n) | (price << 152n) | (slot << 6n),
  batchId,
  asOf,
]

// ---------------------------------------------------------------------- parity

describe('parity: fill state of orders', () => {
  let harness: SaltHarness
  before(async () => {
    harness = await new SaltHarness__factory(await firstSigner(await chain())).deploy()
  })

  const answersTo = async (steps: readonly Step[]): Promise<(readonly unknown[] | string)[]> => {
    const { taken, answers } = await harness.take.staticCall(steps.map(({ call }) => call))
    return answers.map((data, index) => {
      if (!taken[index]) return refusalIn(data)
      const { name } = rules.parseTransaction({ data: steps[index]!.call })!
      return [...rules.decodeFunctionResult(name as never, data)]
    })
  }

  it(`equals the model after each of ${RUNS} x ${STEPS} fills, cancels and floors`, async () => {
    const seen = new Map<string, number>()
    for (let seed = 1; seed <= RUNS; seed++) {
      const { steps } = new RandomSteps(seed)
      const answers = await answersTo(steps)
      for (const [index, { answer, kind, call }] of steps.entries()) {
        const { name, args } = rules.parseTransaction({ data: call })!
        expect(answers[index], `seed ${seed}, step ${index}: ${name}(${args.join()})`).to.deep.equal(answer)
        seen.set(kind, (seen.get(kind) ?? 0) + 1)
      }
    }
    for (const kind of [
      ...['fills', 'ends', 'OrderDead', 'OrderCancelled', 'Overfill', 'PartialSlotMissing'],
      ...['PartialSlotMismatch', 'MarketOrderStale', 'raises', 'stays', 'lives', 'has ended', 'used slot'],
      ...['slot', 'state 0', 'state 1', 'state 2', 'state 3'],
    ]) {
      expect(seen.get(kind), kind).to.be.greaterThan(20)
    }
  }).timeout(60_000)

  it('when many requests are pending, each takes effect at its own time, independent of other makers’ equal salts', async () => {
    const salts = [0n, 1n, 62n, 63n, 1n << 52n, (1n << 52n) + 63n]
    const requests = MAKERS.flatMap((maker) => salts.map((salt) => ({ maker, salt }))).map(
      (order, index) => ({
        ...order,
        at: STARTED + BigInt(index),
      }),
    )
    const calls = [
      ...requests.map(({ maker, salt, at }) => rules.encodeFunctionData('requestCancel', [maker, salt, at])),
      ...requests.flatMap(({ maker, salt, at }) =>
        [at + CANCEL_GRACE, at + CANCEL_GRACE + 1n].map((asOf) =>
          rules.encodeFunctionData('requireAlive', [maker, salt, asOf]),
        ),
      ),
    ]
    const expected = requests.flatMap(({ maker, salt, at }) => [
      null,
      `OrderCancelled(${maker},${salt},${at},${at + CANCEL_GRACE + 1n})`,
    ])
    const { taken, answers } = await harness.take.staticCall(calls)
    const ends = answers.map((data, index) => (taken[index] ? null : refusalIn(data)))
    expect(ends.slice(0, requests.length).every((end) => end === null)).to.equal(true)
    expect(ends.slice(requests.length)).to.deep.equal(expected)
  })
})
