/** What the codes mean, in a few words. A code that is not listed is shown as it is. */
import type { Lang } from "../format";

const CODES: Record<string, [en: string, zh: string]> = {
  insufficient_stock: ["not enough stock", "库存不足"],
  limit_exceeded: ["owner limit reached", "超过限购"],
  not_open: ["sale not open yet", "尚未开售"],
  closed: ["sale closed", "销售已结束"],
  paused: ["sale paused", "销售已暂停"],
  revision_conflict: ["changed by somebody else", "已被他人改动"],
  below_reserved: ["would be under reserved", "将低于已预留"],
  unknown_sku: ["unknown SKU", "未知 SKU"],
  not_found: ["unknown id", "未知单号"],
  expired: ["over before it was paid", "付款前已到期"],
  already_confirmed: ["already confirmed", "已确认"],
  already_cancelled: ["already cancelled", "已取消"],
  not_confirmed: ["not confirmed", "未确认"],
  id_reused: ["id used for something else", "单号已用于其他内容"],
  cross_shard: ["cart spans shards", "购物车跨分片"],
  malformed: ["not JSON", "不是 JSON"],
  invalid: ["a field is wrong", "字段有误"],
  unknown_route: ["no such address", "地址不存在"],
  method_not_allowed: ["method not allowed", "方法不允许"],
  body_timeout: ["body too slow", "请求体过慢"],
  body_too_large: ["body too large", "请求体过大"],
  unsupported_media_type: ["not sent as JSON", "不是 JSON 类型"],
  unauthorized: ["no key that opens it", "没有有效密钥"],
  forbidden: ["scope too small", "权限不足"],
  rate_limited: ["too often", "请求过于频繁"],
  overloaded: ["too much waits", "过载"],
  unavailable: ["not taken now", "暂不可用"],
  outcome_unknown: ["no certain outcome", "结果未知"],
  corrupt: ["damaged value", "数据损坏"],
  lost: ["lost", "已丢失"],
};

export const codeText = (code: string, lang: Lang): string => CODES[code]?.[lang === "zh" ? 1 : 0] ?? code;

/** Kinds of movements, as the ledger names them. */
const KINDS: Record<string, string> = {
  reserve: "预留",
  deduct: "直接扣减",
  confirm: "确认",
  cancel: "取消",
  expire: "到期",
  extend: "延期",
  return: "退货",
  set: "盘点",
  adjust: "调整",
  transfer: "调拨",
  configure: "设置",
  seal: "封号",
  note: "备注",
  revive: "过期后确认",
  lose: "丢失",
  transfer_in: "调入",
  transfer_out: "调出",
};

export const kindText = (kind: string, lang: Lang): string => (lang === "zh" ? (KINDS[kind] ?? kind) : kind);
