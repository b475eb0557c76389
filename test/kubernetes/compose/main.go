// Loads the compose file that is named, with the loader of Docker Compose, and prints the project as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
)

func main() {
	options, err := cli.NewProjectOptions(os.Args[1:], cli.WithOsEnv, cli.WithDefaultProfiles())
	if err == nil {
		project, loadError := options.LoadProject(context.Background())
		if err = loadError; err == nil {
			err = json.NewEncoder(os.Stdout).Encode(project)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
