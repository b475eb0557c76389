// Calls admin-api through a client that oapi-codegen has generated from docs/protocol/openapi.json, and prints JSON.
package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"

	"broomwagon/test/clients/go/adminapi"
)

func main() {
	url, token, pool, endpoint := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client, err := adminapi.NewClientWithResponses(url, adminapi.WithRequestEditorFn(authorize))
	check(err)

	server := adminapi.ServerRegisterJSONRequestBody{
		ServerId:    "go/1",
		Endpoint:    endpoint,
		Dialect:     adminapi.EngineDialectVllm,
		MaxInflight: 3,
	}
	registered, err := client.ServerRegisterWithResponse(ctx, pool, nil, server)
	check(err)
	found, err := client.ServerGetWithResponse(ctx, pool, "go/1")
	check(err)
	limit := 1
	listed, err := client.ServerListWithResponse(ctx, pool, &adminapi.ServerListParams{Limit: &limit})
	check(err)

	config, err := client.PoolSettingsWithResponse(ctx, pool)
	check(err)
	etag := config.HTTPResponse.Header.Get("ETag")
	sessions := 7
	change := adminapi.PoolConfigureJSONRequestBody{MaxSessions: &sessions}
	changed, err := client.PoolConfigureWithResponse(ctx, pool, &adminapi.PoolConfigureParams{IfMatch: &etag}, change)
	check(err)
	sessions = 8
	refused, err := client.PoolConfigureWithResponse(ctx, pool, &adminapi.PoolConfigureParams{IfMatch: &etag}, change)
	check(err)

	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"registered":  registered.JSON201.ServerId,
		"location":    registered.HTTPResponse.Header.Get("Location"),
		"maxInflight": found.JSON200.MaxInflight,
		"listed":      len(listed.JSON200.Servers),
		"next":        listed.HTTPResponse.Header.Get("Link"),
		"changed":     changed.StatusCode(),
		"refused":     refused.ApplicationproblemJSON412.Code,
	}))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
