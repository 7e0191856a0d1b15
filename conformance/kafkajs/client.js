'use strict'
// kafkajs against one broker: client.js BOOTSTRAP PREFIX, the prefix of all topics and groups.

const assert = require('assert')
const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const zstd = require('@bokuweb/zstd-wasm')
const { WAIT, Unsupported, step, pause, wait, Ledger } = require('./steps')

const [bootstrap, prefix] = process.argv.slice(2)
const PARTITIONS = 4
const kafka = new Kafka({ clientId: 'conformance', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, retries: 8 } })
const admin = kafka.admin()
const codecs = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP, snappy: CompressionTypes.Snappy, lz4: CompressionTypes.LZ4, zstd: CompressionTypes.ZSTD }

CompressionCodecs[CompressionTypes.Snappy] = snappy
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: encoder => lz4.compressFrame(encoder.buffer),
  decompress: buffer => lz4.decompressFrame(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(zstd.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(zstd.decompress(buffer))
})

/** The name of the error the call ends with. */
async function failure (call) {
  try {
    return `no error: ${JSON.stringify(await call())}`
  } catch (e) {
    const one = (e.errors || e.groups || [e])[0]
    return one.type || (one.error && one.error.type) || (one.cause && one.cause.type) || one.name
  }
}

const create = (topic, partitions) => admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: partitions, replicationFactor: 1 }] })
const value = (codec, acks, i) => `${codec}/${acks}/${i}/${'compressible '.repeat(40)}`

async function send (topic, messages, settings = {}, producer = {}) {
  const p = kafka.producer(producer)
  await p.connect()
  try {
    return await p.send({ topic, messages, ...settings })
  } finally {
    await p.disconnect()
  }
}

async function createTopic (topic) {
  assert.equal(await create(topic, PARTITIONS), true)
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  assert.equal(topics[0].partitions.length, PARTITIONS)
  return { again: await create(topic, 1) }
}

async function produce (topic, codec, acks) {
  const messages = []
  for (let i = 0; i < 40; i++) messages.push({ partition: i % PARTITIONS, key: `k${i}`, value: value(codec, acks, i) })
  const answers = await send(topic, messages, { compression: codecs[codec], acks }) || []
  return { partitions: answers.length, 'with offset': answers.filter(a => Number(a.baseOffset) >= 0).length }
}

/** Every partition from its start to its end, by a group of its own, since this client reads in groups alone. */
async function readAll (topic, settings = {}) {
  const groupId = `${topic}-reader-${Math.random()}`
  const c = kafka.consumer({ groupId, maxWaitTimeInMs: 100, ...settings })
  const ends = new Map((await admin.fetchTopicOffsets(topic)).map(o => [o.partition, Number(o.high)]))
  const left = new Set([...ends].filter(([, high]) => high > 0).map(([p]) => p))
  const got = []
  await c.connect()
  await c.subscribe({ topics: [topic], fromBeginning: true })
  await c.run({
    eachMessage: async ({ partition, message }) => {
      got.push({ partition, ...message })
      if (Number(message.offset) >= ends.get(partition) - 1) left.delete(partition)
    }
  })
  await wait(`the end of ${topic}, read ${got.length}`, () => left.size === 0)
  await c.disconnect()
  await admin.deleteGroups([groupId])
  return got
}

async function consume (topic, want) {
  const next = new Map()
  const seen = new Set()
  for (const m of await readAll(topic, { maxBytesPerPartition: 10000, maxBytes: 20000 })) {
    assert.equal(Number(m.offset), next.get(m.partition) || 0)
    next.set(m.partition, Number(m.offset) + 1)
    const v = m.value.toString()
    const [codec, acks, i] = v.split('/')
    assert.equal(v, value(codec, acks, i))
    assert.equal(m.key.toString(), `k${i}`)
    assert(!seen.has(v), `came twice: ${v.slice(0, 40)}`)
    seen.add(v)
  }
  assert.equal(seen.size, want)
  return { records: want }
}

async function idempotence (topic) {
  await create(topic, 1)
  const p = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await p.connect()
  for (let i = 0; i < 100; i++) {
    const messages = [...Array(10).keys()].map(n => ({ value: `record ${i * 10 + n}` }))
    const [answer] = await p.send({ topic, messages })
    assert.equal(Number(answer.baseOffset), i * 10)
  }
  await p.disconnect()
  assert.deepEqual((await readAll(topic)).map(m => m.value.toString()), [...Array(1000).keys()].map(n => `record ${n}`))
  return { records: 1000 }
}

async function headers (topic) {
  await create(topic, 1)
  const binary = Buffer.from([...Array(256).keys()])
  const all = { empty: Buffer.alloc(0), binary, twice: [Buffer.from('1'), Buffer.from('2')], '': Buffer.from('no name'), ключ: Buffer.from('значение') }
  const want = []
  for (const key of [null, Buffer.alloc(0), binary]) {
    for (const v of [null, Buffer.alloc(0), binary]) want.push({ key, value: v, headers: want.length % 2 === 0 ? all : {} })
  }
  for (const codec of ['none', 'zstd']) await send(topic, want.map(m => ({ ...m, partition: 0 })), { compression: codecs[codec] })
  const got = (await readAll(topic)).map(({ key, value, headers }) => ({ key, value, headers }))
  got.forEach((g, i) => assert.deepEqual(g, want[i % want.length], `record ${i}`))
  assert.equal(got.length, 2 * want.length)
  return { records: got.length }
}

async function nullHeader (topic) {
  try {
    await send(topic, [{ value: 'null header', headers: { null: null } }])
  } catch (e) {
    throw new Unsupported(String(e))
  }
  const got = (await readAll(topic)).pop()
  return { sent: null, 'comes back': Object.entries(got.headers).map(([k, v]) => [k, v && v.toString()]) }
}

async function offsets (topic) {
  await create(topic, 2)
  const start = Date.now() - 60000
  for (const t of [0, 1, 4, 3, 2]) { // the latest time is not the last record's
    await send(topic, [{ partition: 0, value: `at ${t}`, timestamp: String(start + t * 1000) }])
  }
  const sorted = list => list.sort((a, b) => a.partition - b.partition)
  const out = { 'low, high': sorted(await admin.fetchTopicOffsets(topic)).map(o => [o.low, o.high]) }
  for (const t of [0, 1.5, 4, 5]) out[t] = sorted(await admin.fetchTopicOffsetsByTimestamp(topic, start + t * 1000)).map(o => o.offset)
  return out
}

async function configs (topic) {
  await create(topic, 1)
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: 'max.message.bytes', value: '2000' }] }] })
  const { resources } = await admin.describeConfigs({ resources: [{ ...resource, configNames: ['max.message.bytes'] }] })
  let large
  await wait('the setting acts', async () => {
    large = await failure(() => send(topic, [{ partition: 2, value: Buffer.alloc(5000) }]))
    return !large.startsWith('no error')
  })
  await send(topic, [...Array(10).keys()].map(i => ({ partition: 0, value: `record ${i}` })))
  await admin.fetchTopicOffsets(topic) // this client deletes records only of a topic it has looked up
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '7' }] })
  const { configName, configValue, configSource } = resources[0].configEntries[0]
  const left = (await readAll(topic)).filter(m => m.partition === 0).map(m => Number(m.offset))
  return { value: [configName, configValue, configSource], 'too large': large, 'after delete records': left }
}

/** A member of a group. The client commits what was read before it gives partitions up, and tells only that it does. */
class Member {
  constructor (name, ledger, topic, groupId) {
    Object.assign(this, { name, ledger, topic, owned: new Set(), error: null })
    this.c = new Kafka({ clientId: name, brokers: [bootstrap], logLevel: logLevel.NOTHING })
      .consumer({ groupId, sessionTimeout: 10000, heartbeatInterval: 100, maxWaitTimeInMs: 100 })
    this.c.on(this.c.events.GROUP_JOIN, ({ payload }) => {
      this.owned = new Set(payload.memberAssignment[topic] || [])
      ledger.assigned(this, this.owned)
    })
    this.c.on(this.c.events.REBALANCING, () => this.release())
    this.c.on(this.c.events.CRASH, ({ payload }) => { this.error = payload.error })
    this.running = this.run()
  }

  async run () {
    await this.c.connect()
    await this.c.subscribe({ topics: [this.topic], fromBeginning: true })
    await this.c.run({
      autoCommitThreshold: 20,
      eachMessage: async ({ partition, message }) => this.ledger.read(this, partition, message.value.toString())
    })
  }

  release () {
    this.owned = new Set()
    this.ledger.revoked(this)
  }

  owns (n) {
    if (this.error) throw this.error
    return this.owned.size === n
  }

  async end () {
    await this.running
    await this.c.stop()
    this.release()
    await this.c.disconnect()
  }
}

async function describe (group) {
  const { groups: [g] } = await admin.describeGroups([group])
  return [g.state, g.protocol, g.members.map(m => `${m.clientId} ${m.clientHost}`).sort()]
}

async function groupOfTwo (group) {
  const topic = group
  await create(topic, PARTITIONS)
  const ledger = new Ledger()
  const sent = []
  let enough = false
  const p = kafka.producer()
  await p.connect()
  const load = (async () => {
    while (!enough) {
      const v = `record ${sent.length}`
      await p.send({ topic, messages: [{ partition: sent.length % PARTITIONS, value: v }] })
      sent.push(v)
      await pause(1)
    }
  })()
  const out = {}
  const a = new Member('A', ledger, topic, group)
  await wait('A owns all', () => a.owns(PARTITIONS) && ledger.reads.size > 100)
  const b = new Member('B', ledger, topic, group)
  await wait('A and B own two each', () => a.owns(2) && b.owns(2) && ledger.fine())
  await wait('the group is stable', async () => (await describe(group))[0] === 'Stable')
  out.described = await describe(group)
  out['delete while in use'] = await failure(() => admin.deleteGroups([group]))
  const mark = ledger.reads.size
  await wait('both read', () => ledger.reads.size > mark + 200)
  await a.end()
  await wait('B owns all', () => b.owns(PARTITIONS) && ledger.fine())
  const last = ledger.reads.size
  await wait('B reads', () => ledger.reads.size > last + 100)
  enough = true
  await load
  await p.disconnect()
  await wait('all is read', () => ledger.fine() && sent.every(v => ledger.reads.has(v)))
  await b.end()
  ledger.fine()
  out['read twice'] = ledger.twice()
  const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
  assert.equal(partitions.reduce((sum, o) => sum + Number(o.offset), 0), sent.length, 'sum of committed offsets')
  out['at the end'] = await describe(group)
  return out
}

/** Reads until each partition gave a record; the first of each. With commit, that offset and metadata are committed for partition 0. */
async function first (group, partitions, commit) {
  const c = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100 })
  const firsts = new Map()
  await c.connect()
  await c.subscribe({ topics: [group], fromBeginning: true })
  await c.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (!firsts.has(partition)) firsts.set(partition, [message.offset, message.value.toString()])
    }
  })
  await wait('first records', () => partitions.every(p => firsts.has(p)))
  if (commit) await c.commitOffsets([{ topic: group, partition: 0, ...commit }])
  await c.disconnect()
  return partitions.map(p => firsts.get(p))
}

async function committed (group) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [group] })
  return partitions.sort((a, b) => a.partition - b.partition).map(p => [p.offset, p.metadata])
}

async function resume (group) {
  await create(group, 2)
  await send(group, [...Array(40).keys()].map(i => ({ partition: i % 2, value: `record ${i >> 1}` })))
  await first(group, [0], { offset: '7', metadata: 'seven' })
  const at = await committed(group)
  return { committed: at, first: await first(group, [0, 1]) }
}

async function alter (group) {
  await admin.setOffsets({ groupId: group, topic: group, partitions: [{ partition: 0, offset: '3' }, { partition: 1, offset: '5' }] })
  const altered = await committed(group)
  await admin.resetOffsets({ groupId: group, topic: group, earliest: true })
  return { altered, reset: await committed(group) }
}

async function listGroups (start) {
  const { groups } = await admin.listGroups()
  return groups.filter(g => g.groupId.startsWith(start)).map(g => [g.groupId.slice(start.length), g.protocolType]).sort()
}

async function deleteGroup (group) {
  await admin.deleteGroups([group])
  assert(!(await admin.listGroups()).groups.some(g => g.groupId === group), 'the deleted group is listed')
  return { again: await failure(() => admin.deleteGroups([group])) }
}

async function deleteTopic (topic) {
  await admin.deleteTopics({ topics: [topic] })
  await wait('the topic is gone', async () => !(await admin.listTopics()).includes(topic))
  const once = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 0 } }).admin()
  await once.connect()
  const again = await failure(() => once.deleteTopics({ topics: [topic] }))
  await once.disconnect()
  return { again }
}

async function main () {
  await zstd.init()
  await admin.connect()
  const topic = `${prefix}-main`
  const group = `${prefix}-group-`
  await step('create topic', () => createTopic(topic))
  let kinds = 0
  for (const codec of Object.keys(codecs)) {
    for (const acks of [0, 1, -1]) {
      kinds++
      await step(`produce ${codec} acks=${acks}`, () => produce(topic, codec, acks))
    }
  }
  await step('consume', () => consume(topic, 40 * kinds))
  await step('idempotence', () => idempotence(`${prefix}-idempotence`))
  await step('headers, null and empty', () => headers(`${prefix}-headers`))
  await step('null header', () => nullHeader(`${prefix}-headers`))
  await step('list offsets', () => offsets(`${prefix}-offsets`))
  await step('configs and partitions', () => configs(`${prefix}-configs`))
  await step('group of two', () => groupOfTwo(`${group}two`))
  await step('commit and resume', () => resume(`${group}resume`))
  await step('alter offsets', () => alter(`${group}resume`))
  await step('list groups', () => listGroups(group))
  await step('delete group', () => deleteGroup(`${group}resume`))
  await step('delete topic', () => deleteTopic(topic))
  await admin.disconnect()
  process.exit(0)
}

main().catch(e => {
  console.error(e)
  process.exit(1)
})
