/** Fill state of orders: every sequence of a few operations on two orders of one salt word, on `SaltLib` and on the model. */
import { expect } from 'chai'
import { getAddress, toBeHex } from 'ethers'
import { SaltHarness__factory } from '../../typechain-types/factories/mocks/SaltHarness__factory.ts'
import type { SaltHarness } from '../../typechain-types/mocks/SaltHarness.ts'
import { refusalIn } from '../support/errors.ts'
import { chain, firstSigner } from '../support/exchange.ts'
import { ACTION_LIFETIME, CANCEL_GRACE, type FillStep, NO_SLOT, SaltModel } from './support/salt-model.ts'

const DEPTH = 3
const SEQUENCES_PER_CALL = 16
const STARTED = 1_700_000_000_000n
const BATCH = 7n

const rules = SaltHarness__factory.createInterface()

interface Step {
  readonly call: string
  readonly answer: readonly unknown[] | string
}

/** One maker with two orders of one word, and the time of the next operation. */
class Orders {
  readonly steps: Step[] = []
  readonly #model = new SaltModel()
  readonly #maker: string
  readonly #salts: readonly [bigint, bigint]
  #now = STARTED

  /** Each sequence has its own maker, and over all sequences the orders have every place in the word. */
  constructor(sequence: number) {
    const place = BigInt((sequence + Math.floor(sequence / 64)) % 64)
    this.#maker = getAddress(toBeHex(0xabcdef0000n + BigInt(sequence), 20))
    this.#salts = [640n + place, 640n + ((place + 1n) % 64n)]
  }

  #add(name: string, args: readonly unknown[], answer: Step['answer']): void {
    this.steps.push({ call: rules.encodeFunctionData(name as never, args as never), answer })
  }

  fill(order: 0 | 1, fill: bigint, { price = 500n, slot = NO_SLOT } = {}): void {
    const asOf = this.#now + CANCEL_GRACE
    const [maker, salt] = [this.#maker, this.#salts[order]]
    const step: FillStep = { maker, salt, quantity: 2n, fill, price, slot, batchId: BATCH, asOf }
    const verdict = this.#model.fill(step)
    this.#add(
      'consume',
      [
        (BigInt(maker) << 96n) | (step.quantity << 48n) | fill,
        (salt << 196n) | (price << 152n) | (slot << 6n),
        BATCH,
        asOf,
      ],
      verdict.ok ? [verdict.value] : verdict.refusal,
    )
  }

  cancel(order: 0 | 1): void {
    this.#model.cancel(this.#maker, this.#salts[order], this.#now)
    this.#add('requestCancel', [this.#maker, this.#salts[order], this.#now], [])
  }

  /** Until earlier requests apply to every batch that can still settle. */
  pass(): void {
    this.#now += CANCEL_GRACE + ACTION_LIFETIME + 1n
  }

  askAll(): void {
    for (const salt of this.#salts) {
      this.#add('stateOf', [this.#maker, salt], [this.#model.stateOf(this.#maker, salt)])
      for (const asOf of [this.#now + CANCEL_GRACE, this.#now + CANCEL_GRACE + 1n]) {
        const end = this.#model.endOf({ maker: this.#maker, salt, asOf })
        this.#add('requireAlive', [this.#maker, salt, asOf], end ?? [])
      }
    }
    const { salt, filled, batchId } = this.#model.heldIn(this.#maker, 0n)
    this.#add('readSlot', [this.#maker, 0n], [salt, filled, batchId])
  }
}

const OPERATIONS: readonly ((orders: Orders) => void)[] = [
  (orders) => orders.fill(0, 2n),
  (orders) => orders.fill(0, 1n, { slot: 0n }),
  (orders) => orders.fill(0, 1n, { price: 0n }),
  (orders) => orders.cancel(0),
  (orders) => orders.fill(1, 2n),
  (orders) => orders.fill(1, 1n, { slot: 0n }),
  (orders) => orders.cancel(1),
  (orders) => orders.pass(),
]
const SEQUENCES = OPERATIONS.length ** DEPTH

function stepsOf(sequence: number): Step[] {
  const orders = new Orders(sequence)
  for (let rest = sequence, depth = 0; depth < DEPTH; depth++) {
    OPERATIONS[rest % OPERATIONS.length]?.(orders)
    rest = Math.floor(rest / OPERATIONS.length)
  }
  orders.askAll()
  return orders.steps
}

describe('parity: every short sequence of salt states', () => {
  let harness: SaltHarness
  before(async () => {
    harness = await new SaltHarness__factory(await firstSigner(await chain())).deploy()
  })

  it(`when any ${DEPTH} of ${OPERATIONS.length} operations run, outcomes and states equal the model's (${SEQUENCES} sequences)`, async () => {
    for (let from = 0; from < SEQUENCES; from += SEQUENCES_PER_CALL) {
      const steps = Array.from({ length: SEQUENCES_PER_CALL }, (_, at) => stepsOf(from + at)).flat()
      const { taken, answers } = await harness.take.staticCall(steps.map(({ call }) => call))
      for (const [index, { call, answer }] of steps.entries()) {
        const { name, args } = rules.parseTransaction({ data: call })!
        const data = answers[index] as string
        const found = taken[index] ? [...rules.decodeFunctionResult(name as never, data)] : refusalIn(data)
        expect(found, `${name}(${args.join()})`).to.deep.equal(answer)
      }
    }
  }).timeout(120_000)
})
