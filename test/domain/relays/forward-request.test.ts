/** Forward requests agree with ethers and with the contracts' ABIs, and their bounds are as the forwarder needs them. */
import { expect } from 'chai'
import { type Interface, id, Wallet } from 'ethers'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  calldataOf,
  type ForwardRequest,
  hashForwardRequest,
  preparedDeadline,
  RELAYED_FUNCTIONS,
  REQUEST_LIFE,
  recoverForwardSigner,
} from '../../../domain/relays/forward-request.ts'
import type { Address, Seconds } from '../../../domain/units.ts'
import { keccak, recover } from '../../../service/crypto.ts'
import { AccountManager__factory } from '../../../typechain-types/factories/AccountManager__factory.ts'
import { IsolatedTrader__factory } from '../../../typechain-types/factories/IsolatedTrader__factory.ts'
import { digestOfForward, signForward, type TypedRequest } from '../../support/forward-request.ts'

const FORWARDER = `0x${'fa'.repeat(20)}` as Address
const DOMAIN = { chainId: 6343n, forwarder: FORWARDER }
const KEY = `0x${'4e'.repeat(20)}`

const typed = (request: ForwardRequest): TypedRequest => ({ ...request, value: 0 })

const address = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 40, maxLength: 40 })
const anyRequest = fc.record({
  from: address.map((hex) => `0x${hex}` as Address),
  to: address.map((hex) => `0x${hex}` as Address),
  gas: fc.nat(),
  nonce: fc.maxSafeNat(),
  deadline: fc.maxSafeNat().map((value) => Math.floor(value / 64) as Seconds),
  data: fc.uint8Array({ maxLength: 100 }).map((bytes) => `0x${Buffer.from(bytes).toString('hex')}` as const),
})

describe('forward requests', () => {
  it('when a request is hashed, the digest is that of ethers', () => {
    fc.assert(
      fc.property(anyRequest, (request) => {
        expect(hashForwardRequest(request, DOMAIN, keccak)).to.equal(
          digestOfForward(typed(request), FORWARDER),
        )
      }),
      { numRuns: 200 },
    )
  })

  const wallet = new Wallet(id('owner'))
  const request: ForwardRequest = {
    from: wallet.address.toLowerCase() as Address,
    to: FORWARDER,
    ...{ gas: 150_000, nonce: 3, deadline: 1_900_000_000 as Seconds, data: '0x1234' },
  }
  const digest = hashForwardRequest(request, DOMAIN, keccak)
  const recovered = (signature: string) => recoverForwardSigner(digest, signature, recover)

  it('when the owner has signed it as typed data, its address is recovered', async () => {
    const signature = await signForward(wallet, typed(request), FORWARDER)
    expect(recovered(signature)).to.deep.equal({ ok: true, value: request.from })
  })

  it('when the signature has another form, or a high s, it is refused by its fault', () => {
    const { r, s } = wallet.signingKey.sign(digest)
    const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n
    const high = (order - BigInt(s)).toString(16).padStart(64, '0')
    const codes = ['0x', `${digest}`, `${r}${s.slice(2)}1b01`, `${r}${high}1b`, `${r}${s.slice(2)}00`].map(
      (signature) => {
        const verdict = recovered(signature)
        return verdict.ok ? 'accepted' : verdict.refusal.code
      },
    )
    const format = 'SIGNATURE_FORMAT'
    expect(codes).to.deep.equal([format, format, format, 'SIGNATURE_HIGH_S', 'SIGNATURE_V'])
  })

  it('when calldata is encoded, it is that of the contracts', () => {
    const manager: Interface = AccountManager__factory.createInterface() as Interface
    const market: Interface = IsolatedTrader__factory.createInterface() as Interface
    for (const { signature, selector } of Object.values(RELAYED_FUNCTIONS)) {
      const contract = signature.startsWith('invalidate') ? market : manager
      expect(contract.getFunction(signature)?.selector, signature).to.equal(selector)
    }
    expect(calldataOf({ kind: 'register_session_key', sessionKey: KEY })).to.equal(
      manager.encodeFunctionData('registerSessionKey', [KEY, 3]),
    )
    expect(calldataOf({ kind: 'revoke_session_key', sessionKey: KEY })).to.equal(
      manager.encodeFunctionData('revokeSessionKey', [KEY]),
    )
    const minimum = 2n ** 53n - 1n
    expect(calldataOf({ kind: 'invalidate_margin_nonces', marketId: 1, minimum })).to.equal(
      market.encodeFunctionData('invalidateMarginNonces', [minimum]),
    )
  })

  it('when a request is prepared at any time, its deadline is acceptable for at least five minutes', () => {
    fc.assert(
      fc.property(fc.nat(), (now) => {
        const life = preparedDeadline(now as Seconds) - now
        expect(life).to.be.within(REQUEST_LIFE.prepared, REQUEST_LIFE.most - 300)
      }),
    )
  })
})
