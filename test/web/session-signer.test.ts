import { expect } from 'chai'
import { randomBytes } from 'ethers'
import { describe, it } from 'mocha'
import { privateKeySigner } from '../../client/signers/private-key-signer.ts'
import { randomKey, sessionSigner } from '../../web/account/session-signer.ts'

const ROUNDS = 20

describe('web/account/session-signer', () => {
  it('when digests are signed, address and signatures are those of the default signer of the client', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const key = randomKey()
      const [own, reference] = [sessionSigner(key), privateKeySigner(key)]
      const digest = randomBytes(32)
      expect(own.address).to.equal(reference.address.toLowerCase())
      expect(await own.signDigest(digest)).to.equal(await reference.signDigest(digest))
    }
  })
})
