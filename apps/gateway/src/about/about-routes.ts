import { Injectable } from '@nestjs/common';
import type { Exchange, Routes } from '../http/route';

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Broomwagon gateway</title>
<h1>Broomwagon gateway</h1>
<p>This address looks like one inference engine. Behind it are the engines of a pool.</p>
<ul>
<li>Clients of OpenAI: base URL <code>/v1</code>. Clients of Anthropic: base URL <code>/</code>.</li>
<li>Trainers: this address in place of a router or an engine of SGLang or vLLM.</li>
<li><code>GET /v1/models</code> lists the models.</li>
<li><code>GET /health_generate</code> answers 200 while an engine is ready.</li>
</ul>
<p>All routes are described in <code>docs/gateway.md</code> of Broomwagon.</p>
</html>
`;
const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
  'x-content-type-options': 'nosniff',
};

/** A page for people who open the address in a browser. */
@Injectable()
export class AboutRoutes {
  readonly routes: Routes = { 'GET /': { isPublic: true, answer: (exchange) => this.page(exchange) } };

  private page({ response }: Exchange): void {
    response.writeHead(200, HEADERS).end(PAGE);
  }
}
