import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ConfigError } from '../../service/environment.ts'
import { redisAddressOf, redisUrlOf } from '../../service/redis.ts'

describe('service/redis', () => {
  it('when the URL names a server, it is used as it is', () => {
    const plain = 'redis://127.0.0.1:6390'
    expect(redisAddressOf('REDIS_URL', plain)).to.deep.equal({ url: plain, isTls: false })
    const secured = 'rediss://:secret@redis.internal:6380/2'
    expect(redisAddressOf('REDIS_URL', secured)).to.deep.equal({ url: secured, isTls: true })
  })

  it('when the URL names Sentinels, their addresses, the name of the primary and the password are read', () => {
    const address = redisAddressOf('REDIS_URL', 'redis+sentinel://:se%40cret@10.0.0.1:26379,two:26380/main')
    expect(address).to.deep.equal({
      sentinels: [
        { host: '10.0.0.1', port: 26_379 },
        { host: 'two', port: 26_380 },
      ],
      name: 'main',
      password: 'se@cret',
      isTls: false,
    })
    expect(redisAddressOf('REDIS_URL', 'rediss+sentinel://one:26379/main')).to.include({ isTls: true })
    expect(redisAddressOf('REDIS_URL', 'redis+sentinel://one:26379/main')).to.include({ password: null })
  })

  it('when the URL is invalid, the error names the variable and the valid form, without the password', () => {
    for (const url of [
      'localhost:6379',
      'http://:secret@localhost',
      'redis+sentinel://:secret@one:26379',
      'redis+sentinel://:secret@one/main',
      'redis+sentinel://:secret@one:26379,/main',
    ]) {
      const read = () => redisUrlOf({ REDIS_URL: url })
      expect(read, url).to.throw(
        ConfigError,
        /^REDIS_URL .*expected redis:\/\/host:port, or redis\+sentinel:/,
      )
      expect(read).not.to.throw(ConfigError, /:secret/)
    }
  })

  it('when the variable is empty or not set, there is no Redis', () => {
    expect([redisUrlOf({}), redisUrlOf({ REDIS_URL: '' })]).to.deep.equal([null, null])
  })
})
