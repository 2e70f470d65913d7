import { expect } from 'chai'
import { computeAddress, hexlify, Transaction } from 'ethers'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { plainKey } from '../../service/keys/key-source.ts'
import { signTransaction } from '../../service/transaction-bytes.ts'

const amount = (bits: number) => fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n })
const bytes = (minLength: number, maxLength: number) =>
  fc.uint8Array({ minLength, maxLength }).map((each) => hexlify(each))

const transactions = fc.record({
  chainId: fc.integer({ min: 1, max: 2 ** 32 }),
  nonce: fc.oneof(fc.integer({ min: 0, max: 200 }), fc.integer({ min: 0, max: 2 ** 48 })),
  maxPriorityFeePerGas: amount(60),
  maxFeePerGas: amount(60).map((fee) => fee + 2n ** 60n),
  gas: amount(40),
  to: bytes(20, 20),
  value: amount(200),
  data: fc.oneof(bytes(0, 2), bytes(50, 60), bytes(250, 260), bytes(0, 7_000)),
})
const keys = fc.uint8Array({ minLength: 32, maxLength: 32 }).filter((key) => (key[0] as number) % 255 !== 0)

describe('signed transactions', () => {
  it('when a library parses them, it finds every field, the signer and the hash', async () => {
    await fc.assert(
      fc.asyncProperty(transactions, keys, async (fields, bytes) => {
        const key = plainKey(hexlify(bytes))
        const { hash, raw } = await signTransaction(fields, key.sign)
        const parsed = Transaction.from(raw)
        const { nonce, maxPriorityFeePerGas, maxFeePerGas, value, data } = parsed
        expect({
          chainId: Number(parsed.chainId),
          nonce,
          maxPriorityFeePerGas,
          maxFeePerGas,
          gas: parsed.gasLimit,
          to: parsed.to?.toLowerCase(),
          value,
          data,
        }).to.deep.equal(fields)
        expect(parsed.type).to.equal(2)
        expect(parsed.hash).to.equal(hash)
        expect(parsed.from).to.equal(computeAddress(hexlify(bytes)))
        expect(parsed.from?.toLowerCase()).to.equal(key.address)
        // The canonical encoding: nodes refuse any other.
        expect(parsed.serialized).to.equal(raw)
      }),
      { numRuns: 300 },
    )
  })
})
