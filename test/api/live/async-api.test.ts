import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { asyncApi } from '../../../api/live/async-api.ts'
import { OPS } from '../../../api/live/schema.ts'

const require = createRequire(import.meta.url)

interface Document {
  readonly servers: { readonly api: { readonly host: string; readonly protocol: string } }
  readonly operations: Readonly<Record<string, { readonly messages: readonly { readonly $ref: string }[] }>>
  readonly components: { readonly messages: Readonly<Record<string, unknown>> }
}

describe('the description of the live feed', () => {
  const document = asyncApi('https://api.example.org') as Document

  it('when it is validated by the schema of AsyncAPI 3, it conforms', () => {
    const schema = require('@asyncapi/specs/schemas/3.0.0-without-$id.json') as { definitions: object }
    const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, logger: false })
    const validate = ajv.compile(schema)
    validate(document)
    expect(
      validate.errors?.map(({ instancePath, message }) => `${instancePath} ${message}`) ?? [],
    ).to.deep.equal([])
  })

  it('when it names a message, the message is described; every operation of clients has one', () => {
    const text = JSON.stringify(document)
    const names = [...text.matchAll(/#\/(?:channels\/live|components)\/messages\/(\w+)/g)].map(
      ([, name]) => name,
    )
    expect(names.filter((name) => !(String(name) in document.components.messages))).to.deep.equal([])
    expect(Object.keys(document.operations)).to.have.length(OPS.length + 1)
  })

  it('when the public address is that of TLS, the server is described with wss', () => {
    expect(document.servers.api).to.deep.equal({ host: 'api.example.org', protocol: 'wss' })
  })
})
