// A client of the TypeScript SDK that calls one tool and tells what it got and heard, as JSON.
// Arguments: the folder of the SDK, the URL, the token, the tool, its arguments as JSON.
const [sdk, url, token, name, given] = process.argv.slice(2);
const { Client } = await import(`file://${sdk}/dist/esm/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`file://${sdk}/dist/esm/client/streamableHttp.js`);
const { ToolListChangedNotificationSchema } = await import(`file://${sdk}/dist/esm/types.js`);

const heard = [];
const errors = [];
let told;
const changed = new Promise((resolve) => { told = resolve; });
const client = new Client({ name: "stream-client", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
client.onerror = (error) => errors.push(String(error));
client.setNotificationHandler(ToolListChangedNotificationSchema, (message) => {
  heard.push(message.method);
  told();
});
await client.connect(transport);
let result = await client.callTool({ name, arguments: JSON.parse(given) });
if (name === "change") {
  // The standing stream may not be there yet: until it is, nobody hears.
  const again = setInterval(() => client.callTool({ name, arguments: {} }).catch(() => {}), 50);
  await changed;
  clearInterval(again);
}
await transport.terminateSession();
await client.close();
console.log(JSON.stringify({ result, heard: [...new Set(heard)], errors }));
process.exit(0);
