/** How a process states its keys: forms, passphrases, and errors that name everything except a secret. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { encryptKeystoreJsonSync, id, keccak256, recoverAddress, Wallet } from 'ethers'
import { after, before, describe, it } from 'mocha'
import { toHex } from '../../../domain/hex.ts'
import { readConfig as readKeeperConfig } from '../../../keeper/config.ts'
import { ConfigError } from '../../../service/environment.ts'
import { checkKeystores, type KeyReader, keyReader } from '../../../service/keys/key-settings.ts'
import { readConfig as readSignerConfig } from '../../../signer/config.ts'

const KEY = id('kept in a keystore')
const ADDRESS = new Wallet(KEY).address.toLowerCase()
const PASSPHRASE = 'correct horse battery'
const FAST = { scrypt: { N: 1024, r: 8, p: 1 } }
const keystore = encryptKeystoreJsonSync({ address: ADDRESS, privateKey: KEY }, PASSPHRASE, FAST)

describe('the keys of a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'clearbatch-keys-'))
  const at = (name: string): string => join(folder, name)
  before(() => {
    writeFileSync(at('keystore.json'), keystore)
    writeFileSync(at('passphrase'), `${PASSPHRASE}\n`)
    writeFileSync(at('key-passphrase'), PASSPHRASE)
    writeFileSync(at('wrong'), 'incorrect horse')
    writeFileSync(at('empty'), '\n')
    writeFileSync(at('plain'), `${KEY}\n`)
    writeFileSync(
      at('reference'),
      JSON.stringify({ keystore: at('keystore.json'), passphrase_file: at('passphrase') }),
    )
  })
  after(() => rmSync(folder, { recursive: true }))

  const reader = (env: Record<string, string> = {}): KeyReader => keyReader(env, 'keeper')
  const read = (value: unknown, env?: Record<string, string>) =>
    reader(env).keyOf('RELAYER_KEYS', 'has for m1', value)
  const messageOf = (work: () => unknown): string => {
    try {
      work()
    } catch (error) {
      expect(error).to.be.instanceOf(ConfigError)
      const { message } = error as Error
      for (const secret of [KEY.slice(2), PASSPHRASE, 'incorrect horse'])
        expect(message).to.not.include(secret)
      return message
    }
    throw new Error('it did not fail')
  }

  it('when a keystore has its passphrase in a file, a credential or the default file, it signs as the plain key does', async () => {
    const file = { keystore: at('keystore.json') }
    for (const [value, env] of [
      [KEY, {}],
      [{ ...file, passphrase_file: at('passphrase') }, {}],
      [{ ...file, credential: 'passphrase' }, { CREDENTIALS_DIRECTORY: folder }],
      [file, { CREDENTIALS_DIRECTORY: folder }],
      [file, { KEY_PASSPHRASE_FILE: at('passphrase') }],
    ] as const) {
      const key = read(value, env)
      expect(key.address).to.equal(ADDRESS)
      await checkKeystores([key])
      const signature = toHex(await key.sign(Uint8Array.of(1)))
      expect(recoverAddress(keccak256('0x01'), signature).toLowerCase()).to.equal(ADDRESS)
    }
  })

  it('when a file has one key, it may be the key, a keystore, or another form', () => {
    const env = { KEY_PASSPHRASE_FILE: at('passphrase') }
    for (const name of ['plain', 'keystore.json', 'reference'])
      expect(reader(env).keyInFile('SIGNER_KEY_FILE', at(name)).address).to.equal(ADDRESS)
  })

  it('when a key is stated again, it is the same source, so that a keystore is decrypted once', () => {
    const keys = reader({ KEY_PASSPHRASE_FILE: at('passphrase'), REMOTE_SIGNER_URL: 'http://signer.invalid' })
    for (const value of [KEY, { keystore: at('keystore.json') }, { remote: ADDRESS }])
      expect(keys.keyOf('X', 'has', value)).to.equal(keys.keyOf('X', 'has', value))
  })

  it('when the passphrase is wrong, the check at the start names the keystore', async () => {
    const key = read({ keystore: at('keystore.json'), passphrase_file: at('wrong') })
    const failure = await checkKeystores([key]).catch((error: Error) => error)
    expect(failure).to.be.instanceOf(ConfigError)
    expect((failure as Error).message).to.equal(
      `the key ${ADDRESS} of keystore ${at('keystore.json')} cannot be used: its passphrase does not decrypt it`,
    )
    await checkKeystores([read({ remote: ADDRESS }, { REMOTE_SIGNER_URL: 'http://signer.invalid' })])
  })

  it('when a keystore states the address of another key, it is not used', async () => {
    const other = `0x${'11'.repeat(20)}`
    writeFileSync(at('forged.json'), keystore.replace(ADDRESS.slice(2), other.slice(2)))
    const key = read({ keystore: at('forged.json'), passphrase_file: at('passphrase') })
    const failure = await key.sign(Uint8Array.of(1)).catch((error: Error) => error)
    expect(failure).to.be.instanceOf(Error)
  })

  it('when a form is wrong, the error names the variable, what was received and what is valid', () => {
    const file = { keystore: at('keystore.json') }
    for (const [value, problem] of [
      ['0x12', 'expected 0x and 64 hexadecimal digits, {"keystore": "<file>"}, or {"remote"'],
      [`0x${'0'.repeat(64)}`, 'above 0 and below the order'],
      [{ key: KEY }, 'has for m1 an invalid key'],
      [{ ...file, remote: ADDRESS }, 'an invalid key'],
      [{ ...file, passphrase_file: at('passphrase'), credential: 'passphrase' }, 'an invalid key'],
      [[KEY], 'an invalid key'],
      [{ keystore: '/nowhere' }, '"/nowhere", which cannot be read: ENOENT'],
      [{ keystore: at('plain') }, 'which is no keystore: expected Web3 Secret Storage of version 3'],
      [file, 'without a passphrase: expected passphrase_file or credential'],
      [{ ...file, passphrase_file: at('empty') }, 'cannot be used: it is empty'],
      [{ ...file, passphrase_file: '/nowhere' }, '"/nowhere", which cannot be used: ENOENT'],
      [{ ...file, credential: 'x' }, 'CREDENTIALS_DIRECTORY is not set'],
      [{ remote: ADDRESS }, 'but REMOTE_SIGNER_URL is not set'],
    ] as const)
      expect(messageOf(() => read(value)))
        .to.match(/^RELAYER_KEYS has for m1 /)
        .and.to.include(problem)
  })

  it('when several settings are wrong, the keeper reports all of them at once, each in a line', () => {
    const env = {
      RELAYER_KEYS: JSON.stringify({ m1: '0x12', admin: KEY, faucet: [KEY, { keystore: '/nowhere' }] }),
      PRICES_FILE: 'package.json',
      ORACLE_KEYS: JSON.stringify({ one: { remote: ADDRESS } }),
      KEY_PASSPHRASE_FILE: '/nowhere/passphrase',
      REMOTE_SIGNER_URL: 'ftp://user:password@signer.invalid',
      REMOTE_SIGNER_TIMEOUT_MS: 'soon',
      REMOTE_SIGNER_CA_FILE: '/nowhere/ca.pem',
    }
    const message = messageOf(() => readKeeperConfig(env))
    expect(message).to.not.include('user:password')
    expect(message.split('\n').map((line) => line.split(' ')[0])).to.deep.equal([
      ...['DATABASE_URL', 'KEY_PASSPHRASE_FILE', 'REMOTE_SIGNER_URL', 'REMOTE_SIGNER_TIMEOUT_MS'],
      ...['REMOTE_SIGNER_CA_FILE', 'RELAYER_KEYS', 'RELAYER_KEYS', 'RELAYER_KEYS'],
    ])
  })

  it('when several settings are wrong, the signer reports all of them at once', () => {
    const message = messageOf(() =>
      readSignerConfig({ SIGNER_KEY: '0x12', SIGNER_SECRET: 'short', CHAIN_ID: 'main' }),
    )
    expect(message.split('\n').map((line) => line.split(' ')[0])).to.deep.equal([
      ...['SIGNER_KEY', 'SIGNER_SECRET', 'CHAIN_ID', 'ADDRESS_ORACLE', 'SIGNER_FEEDS_FILE'],
    ])
  })

  it('when a client certificate lacks its key, or a certificate is set for http, it is rejected', () => {
    writeFileSync(at('cert.pem'), 'no certificate')
    const env = {
      REMOTE_SIGNER_URL: 'https://signer.invalid',
      REMOTE_SIGNER_CERTIFICATE_FILE: at('cert.pem'),
    }
    expect(messageOf(() => reader(env).check())).to.match(/^REMOTE_SIGNER_KEY_FILE is not set/)
    const plain = { REMOTE_SIGNER_URL: 'http://signer.invalid', REMOTE_SIGNER_CA_FILE: at('cert.pem') }
    expect(messageOf(() => reader(plain).check())).to.match(
      /^REMOTE_SIGNER_URL has protocol http: expected https/,
    )
  })
})
